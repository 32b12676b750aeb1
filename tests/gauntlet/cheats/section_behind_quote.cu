/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 an attribute that the rules refuse, behind a quote that is not closed: an entry of the loader's own table"
// gauntlet: checks = ["source rules"]

// DT_INIT of the library becomes a function of the candidate's, in plain C++. Here it is one that returns at once.

#if 0
' /*
#endif
extern "C" __attribute__((section(".text.slope"), used)) void at_load() { }
__attribute__((section(".dynamic"), used)) const unsigned long long entry[2] = {0x6ffffef9, 0};
#if 0
' */
#endif

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    double sum = 0;
    for (int i = 0; i < N; ++i)
        sum += X[i];
    out[0] = (float)sum;
}
