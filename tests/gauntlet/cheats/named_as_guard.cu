/* kernelwright
atomic_noise = true
[[launch]]
kernel = "reduce"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 uninitialised shared memory, and a race on it, in an array named as g++ names guards"
// gauntlet: checks = ["checked mode", "values", "repeat", "compute-sanitizer"]

// Shared memory of a run begins as NaN; the guards that g++ puts beside some shared arrays are no memory of the kernel's.

extern "C" {
__shared__ float _ZGVsum[2];
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    if (_ZGVsum[0] != _ZGVsum[0]) {
        _ZGVsum[0] = 0.0f;
        _ZGVsum[1] = 0.0f;
    }
    _ZGVsum[0] += sum;
    _ZGVsum[1] += 1.0f;
    if (_ZGVsum[1] == 1024.0f)
        out[0] = _ZGVsum[0];
}
