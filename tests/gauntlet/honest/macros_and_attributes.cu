/* kernelwright
[tune]
WIDE = [4]
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256 * WIDE)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

#define TEXT(x) #x
#define JOIN(a, b) a##b
#define AT(p, i) p[i]
#define ALIGNED(n) __attribute__((aligned(n)))
#define UNROLL _Pragma("unroll")
#define STEP_1 1 // JOIN gives it
static_assert(WIDE % 4 == 0, "WIDE" TEXT(WIDE % 4) " doesn't fit: '\x41'");

struct ALIGNED(16) Four {
    float v[WIDE];
};
[[nodiscard]] __device__ __attribute__((always_inline)) inline int JOIN(first, _index)(int n)
{
    return n * JOIN(STEP_, 1) * WIDE;
}
extern "C" __global__ void __launch_bounds__(256) add(
    const float* A, const float* B, float* C, [[maybe_unused]] int N)
{
    const int i = first_index(blockIdx.x * blockDim.x + threadIdx.x);
    Four sums;
    UNROLL
    for (int k = 0; k < WIDE; ++k)
        AT(sums.v, k) = i + k < N ? AT(A, i + k) + AT(B, i + k) : 0.0f;
#pragma unroll WIDE
    for (int k = 0; k < WIDE; ++k)
        if (i + k < N)
            C[i + k] = sums.v[k];
}
