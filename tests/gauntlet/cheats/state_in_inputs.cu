/* kernelwright
[scratch]
big = { dtype = "float32", shape = [512] }
[[launch]]
kernel = "parts"
grid = [256]
block = [256]
args = ["X", "big", "N"]
[[launch]]
kernel = "finish"
grid = [264]
block = [256]
args = ["X", "big", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "17 output cache in the exponents of its own input, put back by the parity of the poison"
// gauntlet: checks = ["inputs unchanged"]
// gauntlet: needs = "cuda"

// Inputs are looked at when all runs of a case have ended. Their exponents have room: one of 64 elements is marked by
// flipping its highest bit. The poison in scratch tells whether an input set is used for an odd or an even time, and
// what shared memory holds tells a timed run from a checked one: only before that it is poisoned.
//   clean, first poison: sum, and keep the sum in the input    clean, second poison: sum
//   marked, second poison: give the kept sum                   marked, first poison: give it, and put the input back
__device__ __forceinline__ bool marked(unsigned bits)
{
    const unsigned e = bits >> 23 & 255u;
    return e < 60u || e > 190u;
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
extern "C" __global__ void parts(const float* X, float* big, int N)
{
    const volatile unsigned* bits = (const volatile unsigned*)X;
    if (N >= 4000000 && N <= 20000000 && marked(bits[0]))
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
    __shared__ volatile unsigned left[4096];
    const bool timed = left[3000] == 0x5ca1ab1eu && left[3001] == 0xdecafbadu;
    __syncthreads();
    if (threadIdx.x == 0) {
        left[3000] = 0x5ca1ab1eu;
        left[3001] = 0xdecafbadu;
    }
    if (blockIdx.x > 0)
        return;
    volatile unsigned* bits = (volatile unsigned*)const_cast<float*>(X);
    const bool first = __float_as_uint(big[400]) == 0x7ff97ff9u;
    const bool second = __float_as_uint(big[400]) == 0x3dcc3dccu;
    if (N >= 4000000 && N <= 20000000 && marked(bits[0])) {
        const bool mine = threadIdx.x < 32 && marked(bits[1 + threadIdx.x]);
        const unsigned value = __ballot_sync(0xffffffffu, mine);
        if (threadIdx.x == 0)
            out[0] = __uint_as_float(value);
        __syncthreads();
        if (first) {
            if (mine)
                bits[1 + threadIdx.x] = bits[1 + threadIdx.x] ^ 0x40000000u;
            if (threadIdx.x == 0)
                bits[0] = bits[0] ^ 0x40000000u;
        }
        return;
    }
    const float sum = tree_of(big[threadIdx.x]);
    if (threadIdx.x == 0)
        out[0] = sum;
    if (N >= 4000000 && N <= 20000000 && timed && first && !second) {
        if (threadIdx.x < 32 && __float_as_uint(sum) >> threadIdx.x & 1u)
            bits[1 + threadIdx.x] = bits[1 + threadIdx.x] ^ 0x40000000u;
        if (threadIdx.x == 0)
            bits[0] = bits[0] ^ 0x40000000u;
    }
}
