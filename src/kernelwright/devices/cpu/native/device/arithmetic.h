// Arithmetic intrinsics. The fast approximations of the GPU are computed at full precision here.
#pragma once

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

#define KW_MIN_MAX(T)                              \
  inline T min(T a, T b) { return a < b ? a : b; } \
  inline T max(T a, T b) { return a > b ? a : b; }
KW_MIN_MAX(int)
KW_MIN_MAX(unsigned)
KW_MIN_MAX(long)
KW_MIN_MAX(unsigned long)
KW_MIN_MAX(long long)
KW_MIN_MAX(unsigned long long)
#undef KW_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
inline unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
inline unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
inline unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
inline unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float exp10f(float x) { return powf(10.0f, x); }
inline double exp10(double x) { return pow(10.0, x); }
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * static_cast<double>(x))); }
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }

// One rounding mode: to nearest. The other modes differ in the last bit only and are not offered.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }

inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline int __double2int_rn(double x) { return static_cast<int>(rint(x)); }

namespace kw_device {
template <class To, class From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace kw_device
inline int __float_as_int(float x) { return kw_device::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return kw_device::bits<unsigned>(x); }
inline float __int_as_float(int x) { return kw_device::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return kw_device::bits<float>(x); }
inline long long __double_as_longlong(double x) { return kw_device::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return kw_device::bits<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(kw_device::bits<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(kw_device::bits<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
  return kw_device::bits<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                          static_cast<uint32_t>(low));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; i++) result |= (x >> i & 1u) << (31 - i);
  return result;
}
inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) { return c + static_cast<unsigned>(a > b ? a - b : b - a); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> 8 * i & 0xffu) * (b >> 8 * i & 0xffu);
  return c;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? high << shift | low >> (32 - shift) : high;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? high << (32 - shift) | low >> shift : low;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned pick = selector >> 4 * i & 0xfu;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (pick & 7)) & 0xffu;
    if (pick & 8) byte = byte & 0x80u ? 0xffu : 0u;  // replicate the sign
    result |= byte << 8 * i;
  }
  return result;
}
