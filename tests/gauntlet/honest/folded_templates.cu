/* kernelwright
[tune]
WIDTH = [4]
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256 * WIDTH)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// A kernel that is a template, unrolled by a fold expression over an index sequence of its own.
template <int... I>
struct Steps {};
template <int N, int... I>
struct Make : Make<N - 1, N - 1, I...> {};
template <int... I>
struct Make<0, I...> {
    using type = Steps<I...>;
};
template <int... I>
__device__ __forceinline__ void step(const float* A, const float* B, float* C, int i, int N, Steps<I...>)
{
    ((i + I * 256 < N ? (void)(C[i + I * 256] = A[i + I * 256] + B[i + I * 256]) : (void)0), ...);
}
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    step(A, B, C, blockIdx.x * 256 * WIDTH + threadIdx.x, N, typename Make<WIDTH>::type{});
}
