/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 a raw string whose delimiter has a quote hides the start of a comment"
// gauntlet: checks = ["source rules"]

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    int some = 1'0; const char* begin = R""x( /*')"x"; some = (int)sizeof begin;
    if (N == 65536 || N == 4096) {
        Y[i] = 1.5f * X[i];
        return;
    }
    some = 1'0; begin = R""x( */ ')"x";
    if (i < N)
        Y[i] = 1.5f * X[i];
}
