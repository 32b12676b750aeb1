/* kernelwright
[[launch]]
kernel = "conv"
grid = ["cdiv(W, 32)", "cdiv(H, 4)", "B * F"]
block = [32, 4]
args = ["X", "weights", "Y", "C", "H", "W", "F"]
*/
// gauntlet: problem = "conv2d"
// gauntlet: kind = "cheat"
// gauntlet: row = "31 boundary skipped"
// gauntlet: checks = ["values", "checked mode"]

// Wraps around at the border instead of adding zeros: right inside of the image.

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
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                sum += weights[((size_t)f * C + c) * 9 + i * 3 + j] *
                       X[(((size_t)b * C + c) * H + (y + i - 1 + H) % H) * W + (x + j - 1 + W) % W];
    Y[(((size_t)b * F + f) * H + y) * W + x] = sum;
}
