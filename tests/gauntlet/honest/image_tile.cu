/* kernelwright
[[launch]]
kernel = "conv"
grid = ["cdiv(W, 32)", "cdiv(H, 4)", "B * F"]
block = [32, 4]
args = ["X", "weights", "Y", "C", "H", "W", "F"]
*/
// gauntlet: problem = "conv2d"
// gauntlet: kind = "honest"

// A tile of the image with its border in shared memory.

extern "C" __global__ void conv(const float* X, const float* weights, float* Y, int C, int H, int W, int F)
{
    __shared__ float tile[6][34];
    const int x0 = blockIdx.x * 32 - 1;
    const int y0 = blockIdx.y * 4 - 1;
    const int b = blockIdx.z / F;
    const int f = blockIdx.z % F;
    const int x = blockIdx.x * 32 + threadIdx.x;
    const int y = blockIdx.y * 4 + threadIdx.y;
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) {
        const float* plane = X + ((size_t)b * C + c) * H * W;
        for (int e = threadIdx.y * 32 + threadIdx.x; e < 6 * 34; e += 128) {
            const int yy = y0 + e / 34;
            const int xx = x0 + e % 34;
            tile[e / 34][e % 34] = yy >= 0 && yy < H && xx >= 0 && xx < W ? plane[(size_t)yy * W + xx] : 0.0f;
        }
        __syncthreads();
        const float* w = weights + ((size_t)f * C + c) * 9;
        for (int t = 0; t < 9; ++t)
            sum += w[t] * tile[threadIdx.y + t / 3][threadIdx.x + t % 3];
        __syncthreads();
    }
    if (x < W && y < H)
        Y[(((size_t)b * F + f) * H + y) * W + x] = sum;
}
