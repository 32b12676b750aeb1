// Kernels of the harness itself: they prepare and check what candidates work on. Compiled by NVRTC once per
// device. Every kernel takes its tables by value, so that nothing has to be uploaded per launch.

typedef unsigned long long u64;

// One guarded buffer: [base, begin) and [end, total) are guard bands, [begin, end) is what a candidate gets.
struct Span {
    unsigned char* base;
    u64 begin, end, total;
};
struct Spans {
    Span item[24];
};

// One result row. Zero means: nothing found. "first" is stored inverted so that a zeroed row needs no set-up.
struct Row {
    u64 bad;
    u64 first_inverted;
    u64 worst_bits;
    u64 mask;
    u64 hash;
    u64 unwritten;
};

// Hides the right outputs. It travels as a launch parameter only.
struct Key {
    u64 a, b;
};

__device__ static u64 now() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__device__ static u64 mix(u64 x) {  // finaliser of SplitMix64 (Steele, Lea, Flood 2014)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Word i of a key's keystream.
__device__ static u64 stream(Key key, u64 i) { return mix(key.a + i * 0x9e3779b97f4a7c15ull) ^ key.b; }

// Holds the stream until the host has put the whole sequence into the queue. It ends by itself.
extern "C" __global__ void kw_gate(const volatile unsigned* flag, unsigned* late, unsigned want, u64 limit_ns) {
    u64 start = now();
    while (static_cast<int>(*flag - want) < 0) {
        if (now() - start > limit_ns) {
            *late = want;
            return;
        }
        __nanosleep(100);
    }
}

// One entry of the queue.
extern "C" __global__ void kw_nothing() {}

// Progress that the host can still read after the context is lost.
extern "C" __global__ void kw_mark(volatile unsigned* where, unsigned value) {
    *where = value;
    __threadfence_system();
}

extern "C" __global__ void kw_fill(Spans spans, unsigned pattern) {
    Span s = spans.item[blockIdx.y];
    u64 bytes = s.end - s.begin;
    unsigned char* data = s.base + s.begin;
    u64 at = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    uint4 wide = make_uint4(pattern, pattern, pattern, pattern);
    for (u64 i = at; i < bytes / 16; i += step) reinterpret_cast<uint4*>(data)[i] = wide;
    for (u64 i = bytes / 16 * 16 + at; i < bytes; i += step) data[i] = pattern >> (8 * (i & 3));
}

// Shared memory keeps what the last block left. A block waits a little, so that no multiprocessor is left out.
struct Words {
    unsigned pattern, count;
};
extern "C" __global__ void kw_fill_shared(Words words) {
    extern __shared__ unsigned kw_shared[];
    volatile unsigned* at = kw_shared;
    for (unsigned i = threadIdx.x; i < words.count; i += blockDim.x) at[i] = words.pattern;
    __nanosleep(2000);
}

// Local memory keeps what the last thread of its place left. As many threads as fit on the device, each with a stack
// that is at least the candidate's; a thread waits a little, so that no place is left out. "Nothing" is 0, which no
// compiler knows: a stack that nobody reads again it leaves out otherwise, volatile or not.
template <int BYTES>
__device__ static void fill_local(unsigned pattern, u64 nothing) {
    unsigned stack[BYTES / 4];
    volatile unsigned* at = stack + nothing;
    for (int i = 0; i < BYTES / 4; ++i) at[i] = pattern;
    __nanosleep(2000);
}
#define FILL_LOCAL(BYTES) \
    extern "C" __global__ void kw_fill_local_##BYTES(unsigned pattern, u64 nothing) { fill_local<BYTES>(pattern, nothing); }
FILL_LOCAL(2048) FILL_LOCAL(4096) FILL_LOCAL(16384) FILL_LOCAL(65536)

// 4 KiB a block, as PyTorch's fill does it, with which boards clear the L2 cache: what a cache full of unwritten lines
// costs the kernel behind depends on the order in which they came (2 % on an H200, when blocks strode over the buffer).
extern "C" __global__ void kw_clear(uint4* data, unsigned value) {
    uint4* at = data + static_cast<u64>(blockIdx.x) * 2 * blockDim.x + threadIdx.x;
    at[0] = at[blockDim.x] = make_uint4(value, value, value, value);
}

// What stands in the aligned word at an address of a guard band. No two words are alike, and without the key no word
// tells another: who writes into a band cannot put back what stood there.
__device__ static u64 canary(const unsigned char* at, Key key) {
    return mix(mix(key.a + reinterpret_cast<u64>(at)) ^ key.b);
}

// Words of the bands: those before the buffer, and from the one on that holds its end.
__device__ static u64 band_words(Span s) { return s.begin / 8 + (s.total / 8 - s.end / 8); }
__device__ static u64 band_offset(Span s, u64 word) {
    return 8 * (word < s.begin / 8 ? word : s.end / 8 + (word - s.begin / 8));
}
// The bytes of a word that belong to a band.
__device__ static u64 band_mask(Span s, u64 offset) {
    return offset >= s.begin && offset < s.end ? ~0ull << 8 * (s.end - offset) : ~0ull;
}

extern "C" __global__ void kw_guard_fill(Spans spans, Key key) {
    Span s = spans.item[blockIdx.y];
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < band_words(s); i += step) {
        u64 offset = band_offset(s, i), mask = band_mask(s, offset);
        u64* at = reinterpret_cast<u64*>(s.base + offset);
        u64 word = canary(s.base + offset, key);
        *at = mask == ~0ull ? word : (*at & ~mask) | (word & mask);
    }
}

// Counts damaged guard bytes; "first" is the damaged byte's offset from the allocation's beginning.
extern "C" __global__ void kw_guard_check(Spans spans, Key key, Row* rows) {
    Span s = spans.item[blockIdx.y];
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x, bad = 0, first = ~0ull;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < band_words(s); i += step) {
        u64 offset = band_offset(s, i);
        u64 other = *reinterpret_cast<u64*>(s.base + offset) ^ canary(s.base + offset, key);
        other &= band_mask(s, offset);
        for (u64 byte = 0; other; ++byte, other >>= 8) {
            if (other & 255) {
                ++bad;
                first = min(first, offset + byte);
            }
        }
    }
    if (bad) {
        atomicAdd(&rows[blockIdx.y].bad, bad);
        atomicMax(&rows[blockIdx.y].first_inverted, ~first);
    }
}

// Fingerprint of a buffer's contents: a sum of mixed words, independent of the order of the blocks.
extern "C" __global__ void kw_hash(Spans spans, u64 seed, Row* rows) {
    Span s = spans.item[blockIdx.y];
    const unsigned char* data = s.base + s.begin;
    u64 bytes = s.end - s.begin, words = bytes / 4, sum = 0;
    u64 at = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = at; i < words; i += step)
        sum += mix(seed + (i << 32) * 3 + i * 0x9e3779b97f4a7c15ull + reinterpret_cast<const unsigned*>(data)[i]);
    for (u64 i = words * 4 + at; i < bytes; i += step) sum += mix(~seed + (i << 8) + data[i]);
    for (int lane = 16; lane; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0 && sum) atomicAdd(&rows[blockIdx.y].bad, sum);
}

// Writes float64 values XOR a keystream; "from" and "to" may be the same.
extern "C" __global__ void kw_hide(const u64* from, u64* to, u64 count, Key key) {
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i] ^ stream(key, i);
}

__device__ static double shown(u64 hidden, u64 word) {
    return __longlong_as_double(static_cast<long long>(hidden ^ word));
}

// Sum of squares (as double) and number of the finite values of a hidden array.
extern "C" __global__ void kw_squares(const u64* data, u64 count, Key key, double* sum, u64* finite) {
    double part = 0;
    u64 seen = 0;
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        double x = shown(data[i], stream(key, i));
        if (isfinite(x)) {
            part += x * x;
            ++seen;
        }
    }
    for (int lane = 16; lane; lane /= 2) {
        part += __shfl_down_sync(0xffffffffu, part, lane);
        seen += __shfl_down_sync(0xffffffffu, seen, lane);
    }
    if (threadIdx.x % 32 == 0 && seen) {
        atomicAdd(sum, part);
        atomicAdd(finite, seen);
    }
}

struct Half {
    unsigned short bits;
};
struct Brain {
    unsigned short bits;
};
__device__ static double value(Half x) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
    return f;
}
__device__ static double value(Brain x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
template <typename T>
__device__ static double value(T x) {
    return static_cast<double>(x);
}

// The poison words of kw_fill: each is one 16-bit pattern twice.
struct Poison {
    unsigned first, second;
};

template <typename T>
__device__ static u64 bits_of(const T& x) {
    u64 bits = 0;
    memcpy(&bits, &x, sizeof(T));
    return bits;
}

// Whether an element of at least two bytes holds poison.
template <typename T>
__device__ static bool unwritten(u64 bits, Poison poison) {
    u64 mask = ~0ull >> (64 - 8 * sizeof(T));
    u64 first = (static_cast<u64>(poison.first) << 32 | poison.first) & mask;
    u64 second = (static_cast<u64>(poison.second) << 32 | poison.second) & mask;
    return sizeof(T) > 1 && (bits == first || bits == second);
}

// A term of the hash of an output. Up to 32 bits: multilinear hashing modulo 2^64 with secret coefficients, the odd
// keystream words; outputs that differ collide with probability 2^-32 at most. All NaN count as one.
template <typename T>
__device__ static u64 hashed(u64 bits, u64 word) {
    return sizeof(T) < 8 ? ((bits & 0xffffffffull) + 1) * (word | 1) : mix(word + bits);
}

// |out - ref| <= atol + rtol * |ref| in float64; a value that is finite on one side only is wrong. The hash is a
// sum, independent of the order of the blocks.
template <typename T>
__device__ static void compare(const T* out, const u64* ref, u64 count, Key key, double atol, double rtol,
                               Poison poison, Row* row) {
    u64 bad = 0, first = ~0ull, mask = 0, hash = 0, never = 0;
    double worst = 0;
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        T raw = out[i];
        u64 word = stream(key, i), bits = bits_of(raw);
        double got = value(raw), want = shown(ref[i], word);
        hash += hashed<T>(got == got ? bits : ~0ull, word);
        bool wrong;
        if (isfinite(got) && isfinite(want)) {
            double error = fabs(got - want), allowed = atol + rtol * fabs(want);
            wrong = !(error <= allowed);
            if (error > worst * allowed) worst = allowed > 0 ? error / allowed : 1.7976931348623157e308;
        } else {
            wrong = isfinite(got) != isfinite(want);
            mask += wrong;
        }
        if (wrong) {
            ++bad;
            never += unwritten<T>(bits, poison);
            first = min(first, i);
        }
    }
    if (bad) {
        atomicAdd(&row->bad, bad);
        atomicMax(&row->first_inverted, ~first);
        if (mask) atomicAdd(&row->mask, mask);
        if (never) atomicAdd(&row->unwritten, never);
    }
    // Non-negative doubles order like their bits.
    for (int lane = 16; lane; lane /= 2) {
        worst = fmax(worst, __shfl_down_sync(0xffffffffu, worst, lane));
        hash += __shfl_down_sync(0xffffffffu, hash, lane);
    }
    if (threadIdx.x % 32) return;
    if (worst > 0) atomicMax(&row->worst_bits, (u64)__double_as_longlong(worst));
    if (hash) atomicAdd(&row->hash, hash);
}

#define COMPARE(NAME, TYPE)                                                                                      \
    extern "C" __global__ void kw_compare_##NAME(const TYPE* out, const u64* ref, u64 count, Key key,            \
                                                 double atol, double rtol, Poison poison, Row* row) {            \
        compare<TYPE>(out, ref, count, key, atol, rtol, poison, row);                                            \
    }
COMPARE(float16, Half)
COMPARE(bfloat16, Brain)
COMPARE(float32, float)
COMPARE(float64, double)
COMPARE(int8, signed char)
COMPARE(uint8, unsigned char)
COMPARE(int16, short)
COMPARE(uint16, unsigned short)
COMPARE(int32, int)
COMPARE(uint32, unsigned)
COMPARE(int64, long long)
COMPARE(uint64, unsigned long long)
COMPARE(bool, unsigned char)
