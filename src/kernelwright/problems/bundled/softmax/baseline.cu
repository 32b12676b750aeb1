/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["X", "Y", "R", "C"]
*/

// One block a row, three passes over it: maximum, sum, result.

extern "C" __global__ void softmax(const float* X, float* Y, int R, int C)
{
    __shared__ float tree[128];
    const float* x = X + (size_t)blockIdx.x * C;
    float* y = Y + (size_t)blockIdx.x * C;

    float largest = -1e38f;
    for (int i = threadIdx.x; i < C; i += 128)
        largest = fmaxf(largest, x[i]);
    tree[threadIdx.x] = largest;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] = fmaxf(tree[threadIdx.x], tree[threadIdx.x + half]);
        __syncthreads();
    }
    largest = tree[0];
    __syncthreads();

    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        sum += expf(x[i] - largest);
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    sum = tree[0];

    for (int i = threadIdx.x; i < C; i += 128)
        y[i] = expf(x[i] - largest) / sum;
}
