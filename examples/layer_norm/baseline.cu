/* kernelwright
[[launch]]
kernel = "layer_norm"
grid = ["R"]
block = [128]
args = ["X", "G", "B", "Y", "C"]
*/
// One block a row, three passes over it.

extern "C" __global__ void layer_norm(const float* X, const float* G, const float* B, float* Y, int C)
{
    __shared__ float tree[128];
    const float* x = X + (size_t)blockIdx.x * C;
    float* y = Y + (size_t)blockIdx.x * C;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        sum += x[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    const float mean = tree[0] / C;
    __syncthreads();

    float squares = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        squares += (x[i] - mean) * (x[i] - mean);
    tree[threadIdx.x] = squares;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    const float scale = rsqrtf(tree[0] / C + 1e-5f);

    for (int i = threadIdx.x; i < C; i += 128)
        y[i] = (x[i] - mean) * scale * G[i] + B[i];
}
