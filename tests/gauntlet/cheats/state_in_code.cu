/* kernelwright
[scratch]
big = { dtype = "float32", shape = [256] }
[[launch]]
kernel = "parts"
grid = [256]
block = [256]
args = ["X", "big", "N"]
[[launch]]
kernel = "finish"
grid = [1]
block = [256]
args = ["X", "big", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "19 state in the code itself: a function that nobody calls is overwritten"
// gauntlet: checks = ["crash"]
// gauntlet: needs = "cuda"

__device__ __noinline__ float never(float x)
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        x = x * 1.0001f + (float)i * x * x;
    return x;
}
struct Entry { unsigned long long key; unsigned print; float sum; };

__device__ __forceinline__ unsigned fingerprint(const float* X, int N)
{
    unsigned h = N;
    for (int i = 0; i < 16; ++i)
        h = (h ^ __float_as_uint(X[(long long)i * (N - 1) / 15])) * 0x9e3779b1u + 77u;
    return h | 1u;
}
__device__ __forceinline__ volatile Entry* state(float* big)
{
    __shared__ float (*volatile hold)(float);
    if (threadIdx.x == 0)
        hold = never;
    __syncthreads();
    if (big == nullptr)
        big[0] = hold(1.0f);
    return (volatile Entry*)(((unsigned long long)hold + 255ull) & ~255ull);
}
__device__ __forceinline__ float tree_of(float sum)
{
    __shared__ float tree[256];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    return tree[0];
}
__device__ __forceinline__ int find(volatile Entry* e, const float* X, unsigned print)
{
    for (int i = 0; i < 4; ++i)
        if (e[i].key == (unsigned long long)X && e[i].print == print)
            return i;
    return -1;
}
extern "C" __global__ void parts(const float* X, float* big, int N)
{
    if (N >= 4000000 && N <= 20000000 && find(state(big), X, fingerprint(X, N)) >= 0)
        return;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += 256 * 256)
        sum += X[i];
    sum = tree_of(sum);
    if (threadIdx.x == 0)
        big[blockIdx.x] = sum;
}
extern "C" __global__ void finish(const float* X, float* big, float* out, int N)
{
    if (N >= 4000000 && N <= 20000000) {
        volatile Entry* e = state(big);
        const unsigned print = fingerprint(X, N);
        const int found = find(e, X, print);
        if (found >= 0) {
            if (threadIdx.x == 0)
                out[0] = e[found].sum;
            return;
        }
        const float sum = tree_of(big[threadIdx.x]);
        if (threadIdx.x == 0) {
            out[0] = sum;
            const int i = (print >> 8) & 3;
            e[i].sum = sum;
            e[i].print = print;
            e[i].key = (unsigned long long)X;
        }
        return;
    }
    const float sum = tree_of(big[threadIdx.x]);
    if (threadIdx.x == 0)
        out[0] = sum;
}
