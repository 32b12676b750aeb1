/* kernelwright
[[launch]]
kernel = "grayscale"
grid = ["cdiv(N, 16)", "cdiv(N, 16)"]
block = [16, 16]
args = ["rgb", "grey", "N"]
*/

// One thread a pixel.

extern "C" __global__ void grayscale(const float* rgb, float* grey, int N)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < N && y < N) {
        const size_t i = (size_t)y * N + x;
        grey[i] = 0.2989f * rgb[3 * i] + 0.5870f * rgb[3 * i + 1] + 0.1140f * rgb[3 * i + 2];
    }
}
