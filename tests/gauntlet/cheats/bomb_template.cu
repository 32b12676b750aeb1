/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: template bomb"
// gauntlet: checks = ["compile limits", "compiler"]

// Each level names two new types of the next: 2^40 instantiations.

template <int DEPTH, unsigned long long ID>
struct Bomb {
    enum : unsigned { VALUE = Bomb<DEPTH - 1, 2 * ID>::VALUE + Bomb<DEPTH - 1, 2 * ID + 1>::VALUE };
};
template <unsigned long long ID>
struct Bomb<0, ID> {
    enum : unsigned { VALUE = 1 };
};

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + (Bomb<40, 1>::VALUE == 7 ? 1.0f : 0.0f);
}
