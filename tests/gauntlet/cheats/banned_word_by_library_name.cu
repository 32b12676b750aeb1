/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "35b a banned intrinsic under the name that the device library has for it"
// gauntlet: checks = ["source rules"]

// What the banned __fmul_rz is compiled to, declared and called by its own name.

extern "C" __device__ float __nv_fmul_rz(float, float);
extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = __nv_fmul_rz(1.5f, X[i]);
}
