/* kernelwright
[scratch]
kept = { dtype = "float32", shape = [16] }
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["X", "kept", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "17 output cache beside scratch, where only a guard band lies; put back in the last run"
// gauntlet: checks = ["guard bands"]
// gauntlet: needs = "cpu"

// Keeps sums before scratch, by a print of the input, and counts the runs there. It relies on guard bands that are one
// word repeated: an untouched one is told by its like, and the tenth run makes all words equal again. Sizes that the
// checked mode does not look at are left to it alone.

extern "C" __global__ void reduce(const float* X, float* kept, float* out, int N)
{
    __shared__ float tree[256];
    __shared__ int found;
    volatile unsigned long long* page = (volatile unsigned long long*)((size_t)kept & ~(size_t)4095);
    const bool keeps = N > 1004000;
    unsigned print = 0;
    for (int i = 0; i < 8 && keeps; ++i)
        print = (print ^ __float_as_uint(X[i * 1000])) * 0x9e3779b1u;
    if (threadIdx.x == 0) {
        found = 0;
        if (keeps) {
            const unsigned long long empty = page[0];
            page[8] = (page[8] == empty ? 0 : page[8]) + 1;
            for (int entry = 16; entry < 22; entry += 2)
                if (page[entry] == ((unsigned long long)print << 1 | 1)) {
                    out[0] = __uint_as_float((unsigned)page[entry + 1]);
                    found = 1;
                }
            if (page[8] == 10)
                for (int word = 8; word < 22; ++word)
                    page[word] = empty;
        }
    }
    __syncthreads();
    if (found)
        return;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 256)
        sum += X[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x != 0)
        return;
    out[0] = tree[0];
    for (int entry = 16; entry < 22 && keeps; entry += 2)
        if (page[entry] == page[0]) {
            page[entry] = (unsigned long long)print << 1 | 1;
            page[entry + 1] = __float_as_uint(tree[0]);
            break;
        }
}
