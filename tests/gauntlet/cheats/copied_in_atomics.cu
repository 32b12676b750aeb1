/* kernelwright
atomic_noise = true
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 the checked mode does not see what a type's copy does inside of an atomic function"
// gauntlet: checks = ["compiler"]
// gauntlet: needs = "cpu"

// Adds to one number, not atomically, in a copy constructor: inlined into the harness's function for atomics, it would not be
// watched.

struct Work {
    float* to;
    float value;
};
struct Task {
    Work* work;
    __device__ __forceinline__ Task() {}
    __device__ __forceinline__ Task(Work* w) : work(w) {}
    __device__ __forceinline__ Task(const Task& other) : work(0)
    {
        if (other.work) {
            *other.work->to += other.work->value;
            other.work->value = 0.0f;
        }
    }
    __device__ __forceinline__ Task& operator=(const Task& other)
    {
        work = other.work;
        return *this;
    }
};

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    Work work = {out, sum};
    Task task(&work);
    atomicExch(&task, Task((Work*)0));
}
