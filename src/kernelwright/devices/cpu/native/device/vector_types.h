// CUDA's vector types with CUDA's alignments (CUDA C++ Programming Guide, table "Alignment Requirements").
#pragma once

#define KW_VECTOR(T, NAME, ALIGN2, ALIGN4)                           \
  struct __align__(sizeof(T)) NAME##1 { T x; };                      \
  struct __align__(ALIGN2) NAME##2 { T x, y; };                      \
  struct __align__(ALIGN4) NAME##4 { T x, y, z, w; };                \
  inline NAME##1 make_##NAME##1(T x) { return {x}; }                 \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }         \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define KW_VECTOR3(T, NAME) \
  struct NAME##3 { T x, y, z; };

// uint3 is in abi.h: threadIdx has that type.
KW_VECTOR3(signed char, char)
KW_VECTOR3(unsigned char, uchar)
KW_VECTOR3(short, short)
KW_VECTOR3(unsigned short, ushort)
KW_VECTOR3(int, int)
KW_VECTOR3(float, float)
KW_VECTOR3(double, double)
KW_VECTOR3(long, long)
KW_VECTOR3(unsigned long, ulong)
KW_VECTOR3(long long, longlong)
KW_VECTOR3(unsigned long long, ulonglong)

KW_VECTOR(signed char, char, 2, 4)
KW_VECTOR(unsigned char, uchar, 2, 4)
KW_VECTOR(short, short, 4, 8)
KW_VECTOR(unsigned short, ushort, 4, 8)
KW_VECTOR(int, int, 8, 16)
KW_VECTOR(unsigned, uint, 8, 16)
KW_VECTOR(float, float, 8, 16)
KW_VECTOR(double, double, 16, 16)
KW_VECTOR(long, long, 16, 16)
KW_VECTOR(unsigned long, ulong, 16, 16)
KW_VECTOR(long long, longlong, 16, 16)
KW_VECTOR(unsigned long long, ulonglong, 16, 16)
#undef KW_VECTOR
#undef KW_VECTOR3
