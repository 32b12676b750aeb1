/* kernelwright
[[launch]]
kernel = "conv"
grid = ["cdiv(W, 32)", "cdiv(H, 4)", "B * F"]
block = [32, 4]
args = ["X", "weights", "Y", "C", "H", "W", "F"]
*/
// gauntlet: problem = "conv2d"
// gauntlet: kind = "honest"

// A constant table of the filter's offsets, and a device function for the border.

__constant__ int down[9] = {-1, -1, -1, 0, 0, 0, 1, 1, 1};
__constant__ int right[9] = {-1, 0, 1, -1, 0, 1, -1, 0, 1};

__device__ __forceinline__ float pixel(const float* plane, int y, int x, int H, int W)
{
    return y >= 0 && y < H && x >= 0 && x < W ? plane[(size_t)y * W + x] : 0.0f;
}

extern "C" __global__ void conv(const float* X, const float* weights, float* Y, int C, int H, int W, int F)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int b = blockIdx.z / F;
    const int f = blockIdx.z % F;
    if (x >= W || y >= H)
        return;
    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        for (int tap = 0; tap < 9; ++tap)
            sum += weights[((size_t)f * C + c) * 9 + tap] *
                   pixel(X + ((size_t)b * C + c) * H * W, y + down[tap], x + right[tap], H, W);
    Y[(((size_t)b * F + f) * H + y) * W + x] = sum;
}
