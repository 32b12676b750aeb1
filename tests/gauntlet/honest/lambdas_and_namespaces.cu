/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// Namespaces, a template with constexpr values, a lambda, a functor.

namespace outer {
namespace {
template <typename T, int WIDTH>
struct Traits {
    enum : int { WARP = WIDTH };
    static __device__ constexpr T zero() { return T(0); }
    __device__ T operator()(T a, T b) const { return a + b; }
};
} // namespace
constexpr int LANES = Traits<float, 32>::WARP;
} // namespace outer

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const auto index = [=]() { return int(blockIdx.x * (blockDim.x / outer::LANES) + threadIdx.x / outer::LANES); };
    const int i = index() * outer::LANES + threadIdx.x % outer::LANES;
    const outer::Traits<float, 32> sum{};
    if (i < N)
        C[i] = sum(A[i], B[i]) + outer::Traits<float, 32>::zero();
}
