/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["A", "B", "R", "C"]
*/

// One thread an element: reads are coalesced, writes are strided.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    const int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < R && c < C)
        B[(size_t)c * R + r] = A[(size_t)r * C + c];
}
