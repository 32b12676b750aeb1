/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"
// gauntlet: needs = "cuda"

// Whole tiles come and go by bulk copies, and everybody waits for them.
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    __shared__ alignas(128) float a[1024], b[1024];
    __shared__ alignas(8) unsigned long long barrier;
    const int first = blockIdx.x * 1024;
    if (first + 1024 > N) {
        for (int i = first + threadIdx.x; i < N; i += 256)
            C[i] = A[i] + B[i];
        return;
    }
    const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                     ::"r"((unsigned)__cvta_generic_to_shared(a)), "l"(A + first), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                     ::"r"((unsigned)__cvta_generic_to_shared(b)), "l"(B + first), "r"(bar) : "memory");
    }
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar) : "memory");
    for (int i = threadIdx.x; i < 1024; i += 256)
        a[i] += b[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;"
                     ::"l"(C + first), "r"((unsigned)__cvta_generic_to_shared(a)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
