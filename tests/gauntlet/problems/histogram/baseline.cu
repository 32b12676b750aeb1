/* kernelwright
[[launch]]
kernel = "histogram"
grid = [64]
block = [1]
args = ["X", "counts", "N"]
*/

extern "C" __global__ void histogram(const int* X, int* counts, int N)
{
    int count = 0;
    for (int i = 0; i < N; ++i)
        count += X[i] == blockIdx.x;
    counts[blockIdx.x] = count;
}
