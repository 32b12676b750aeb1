// cuda_fp16.h and cuda_bf16.h. Every operation rounds once to the 16-bit type, as the GPU's instructions do;
// a fused multiply-add is exact in double before its one rounding.
#pragma once

#if defined(__aarch64__)
typedef __fp16 KwHalf;  // g++ has _Float16 there only from version 13 on
#else
typedef _Float16 KwHalf;
#endif

struct __align__(2) __half {
  KwHalf value;
  __half() = default;
  __half(float x) : value(static_cast<KwHalf>(x)) {}
  __half(double x) : value(static_cast<KwHalf>(x)) {}
  __half(int x) : value(static_cast<KwHalf>(x)) {}
  __half(unsigned x) : value(static_cast<KwHalf>(x)) {}
  operator float() const { return static_cast<float>(value); }
};

struct __align__(2) __nv_bfloat16 {
  uint16_t value;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) : value(round(x)) {}
  __nv_bfloat16(double x) : value(round(static_cast<float>(x))) {}
  __nv_bfloat16(int x) : value(round(static_cast<float>(x))) {}
  __nv_bfloat16(unsigned x) : value(round(static_cast<float>(x))) {}
  operator float() const { return kw_device::bits<float>(static_cast<uint32_t>(value) << 16); }

 private:
  static uint16_t round(float x) {  // to nearest, ties to even; NaN stays NaN
    const uint32_t u = kw_device::bits<uint32_t>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
};

struct __align__(4) __half2 {
  __half x, y;
};
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// Everything below exists for both 16-bit types with the same names.
#define KW_BINARY(H, H2, NAME, EXPRESSION) \
  inline H NAME(H left, H right) {         \
    const float a = left, b = right;       \
    return H(EXPRESSION);                  \
  }                                        \
  inline H2 NAME##2(H2 left, H2 right) { return {NAME(left.x, right.x), NAME(left.y, right.y)}; }
#define KW_COMPARE(H, NAME, EXPRESSION) \
  inline bool NAME(H left, H right) {   \
    const float a = left, b = right;    \
    return EXPRESSION;                  \
  }
#define KW_OPERATOR(H, H2, OP, ASSIGN)                                                         \
  inline H operator OP(H a, H b) { return H(static_cast<float>(a) OP static_cast<float>(b)); } \
  inline H2 operator OP(H2 a, H2 b) { return {a.x OP b.x, a.y OP b.y}; }                       \
  inline H& operator ASSIGN(H& a, H b) { return a = a OP b; }                                  \
  inline H2& operator ASSIGN(H2& a, H2 b) { return a = a OP b; }
#define KW_RELATION(H, OP) \
  inline bool operator OP(H a, H b) { return static_cast<float>(a) OP static_cast<float>(b); }
#define KW_UNARY(H, H2, NAME, NAME2, EXPRESSION) \
  inline H NAME(H operand) {                     \
    const float a = operand;                     \
    return H(EXPRESSION);                        \
  }                                              \
  inline H2 NAME2(H2 v) { return {NAME(v.x), NAME(v.y)}; }

#define KW_SIXTEEN_BITS(H, H2)                                                                   \
  KW_OPERATOR(H, H2, +, +=)                                                                      \
  KW_OPERATOR(H, H2, -, -=)                                                                      \
  KW_OPERATOR(H, H2, *, *=)                                                                      \
  KW_OPERATOR(H, H2, /, /=)                                                                      \
  KW_RELATION(H, <)                                                                              \
  KW_RELATION(H, >)                                                                              \
  KW_RELATION(H, <=)                                                                             \
  KW_RELATION(H, >=)                                                                             \
  KW_RELATION(H, ==)                                                                             \
  KW_RELATION(H, !=)                                                                             \
  inline H operator-(H a) { return H(-static_cast<float>(a)); }                                  \
  inline H2 operator-(H2 a) { return {-a.x, -a.y}; }                                             \
  KW_BINARY(H, H2, __hadd, a + b)                                                                \
  KW_BINARY(H, H2, __hsub, a - b)                                                                \
  KW_BINARY(H, H2, __hmul, a* b)                                                                 \
  KW_BINARY(H, H2, __hmax, fmaxf(a, b))                                                          \
  KW_BINARY(H, H2, __hmin, fminf(a, b))                                                          \
  inline H __hdiv(H a, H b) { return a / b; }                                                    \
  inline H2 __h2div(H2 a, H2 b) { return a / b; }                                                \
  KW_COMPARE(H, __heq, a == b)                                                                   \
  KW_COMPARE(H, __hne, a != b)                                                                   \
  KW_COMPARE(H, __hlt, a < b)                                                                    \
  KW_COMPARE(H, __hle, a <= b)                                                                   \
  KW_COMPARE(H, __hgt, a > b)                                                                    \
  KW_COMPARE(H, __hge, a >= b)                                                                   \
  inline bool __hisnan(H a) { return static_cast<float>(a) != static_cast<float>(a); }           \
  inline H __hfma(H a, H b, H c) {                                                               \
    const double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);   \
    return H(product + static_cast<double>(static_cast<float>(c)));                              \
  }                                                                                              \
  inline H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  KW_UNARY(H, H2, __hneg, __hneg2, -a)                                                           \
  KW_UNARY(H, H2, __habs, __habs2, fabsf(a))                                                     \
  KW_UNARY(H, H2, hexp, h2exp, expf(a))                                                          \
  KW_UNARY(H, H2, hexp2, h2exp2, exp2f(a))                                                       \
  KW_UNARY(H, H2, hlog, h2log, logf(a))                                                          \
  KW_UNARY(H, H2, hlog2, h2log2, log2f(a))                                                       \
  KW_UNARY(H, H2, hsqrt, h2sqrt, sqrtf(a))                                                       \
  KW_UNARY(H, H2, hrsqrt, h2rsqrt, 1.0f / sqrtf(a))                                              \
  KW_UNARY(H, H2, hrcp, h2rcp, 1.0f / a)                                                         \
  KW_UNARY(H, H2, hsin, h2sin, sinf(a))                                                          \
  KW_UNARY(H, H2, hcos, h2cos, cosf(a))                                                          \
  KW_UNARY(H, H2, htanh, h2tanh, tanhf(a))                                                       \
  KW_UNARY(H, H2, hfloor, h2floor, floorf(a))                                                    \
  KW_UNARY(H, H2, hceil, h2ceil, ceilf(a))                                                       \
  KW_UNARY(H, H2, hrint, h2rint, rintf(a))                                                       \
  inline float __low2float(H2 v) { return v.x; }                                                 \
  inline float __high2float(H2 v) { return v.y; }                                                \
  inline H atomicAdd(H* p, H v) {                                                                \
    return kw_device::update(p, [v](H old) -> H { return old + v; });                            \
  }                                                                                              \
  inline H2 atomicAdd(H2* p, H2 v) {                                                             \
    return kw_device::update(p, [v](H2 old) -> H2 { return old + v; });                          \
  }

KW_SIXTEEN_BITS(__half, __half2)
KW_SIXTEEN_BITS(__nv_bfloat16, __nv_bfloat162)
#undef KW_SIXTEEN_BITS
#undef KW_BINARY
#undef KW_COMPARE
#undef KW_OPERATOR
#undef KW_RELATION
#undef KW_UNARY

// Conversions, whose names carry the type: SHORT is half or bfloat16, PAIR is half2 or bfloat162.
#define KW_CONVERSIONS(H, H2, SHORT, PAIR)                                                               \
  inline H __float2##SHORT(float x) { return H(x); }                                                     \
  inline H __float2##SHORT##_rn(float x) { return H(x); }                                                \
  inline H __double2##SHORT(double x) { return H(x); }                                                   \
  inline H __int2##SHORT##_rn(int x) { return H(static_cast<float>(x)); }                                \
  inline H __uint2##SHORT##_rn(unsigned x) { return H(static_cast<float>(x)); }                          \
  inline int __##SHORT##2int_rn(H h) { return static_cast<int>(rintf(h)); }                              \
  inline int __##SHORT##2int_rz(H h) { return static_cast<int>(static_cast<float>(h)); }                 \
  inline float __##SHORT##2float(H h) { return h; }                                                      \
  inline H2 __floats2##PAIR##_rn(float a, float b) { return {H(a), H(b)}; }                              \
  inline H2 __float2##PAIR##_rn(float a) { return {H(a), H(a)}; }                                        \
  inline H2 __float22##PAIR##_rn(float2 v) { return {H(v.x), H(v.y)}; }                                  \
  inline float2 __##SHORT##22float2(H2 v) { return {static_cast<float>(v.x), static_cast<float>(v.y)}; } \
  inline H2 __##SHORT##2##PAIR(H h) { return {h, h}; }                                                   \
  inline H2 __halves2##PAIR(H a, H b) { return {a, b}; }                                                 \
  inline H2 make_##PAIR(H a, H b) { return {a, b}; }                                                     \
  inline H __low2##SHORT(H2 v) { return v.x; }                                                           \
  inline H __high2##SHORT(H2 v) { return v.y; }                                                          \
  inline H2 __low2##PAIR(H2 v) { return {v.x, v.x}; }                                                    \
  inline H2 __high2##PAIR(H2 v) { return {v.y, v.y}; }                                                   \
  inline H2 __lows2##PAIR(H2 a, H2 b) { return {a.x, b.x}; }                                             \
  inline H2 __highs2##PAIR(H2 a, H2 b) { return {a.y, b.y}; }                                            \
  inline H2 __lowhigh2highlow_##SHORT(H2 v) { return {v.y, v.x}; }                                       \
  inline unsigned short __##SHORT##_as_ushort(H h) { return kw_device::bits<unsigned short>(h); }        \
  inline short __##SHORT##_as_short(H h) { return kw_device::bits<short>(h); }                           \
  inline H __ushort_as_##SHORT(unsigned short x) { return kw_device::bits<H>(x); }                       \
  inline H __short_as_##SHORT(short x) { return kw_device::bits<H>(x); }
KW_CONVERSIONS(__half, __half2, half, half2)
KW_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
#undef KW_CONVERSIONS
