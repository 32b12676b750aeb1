/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "17 output cache in memory that code run at load maps for all runs: #ident puts DT_INIT into .dynamic"
// gauntlet: checks = ["source rules", "binary rules", "crash"]
// gauntlet: needs = "cpu"

// g++ writes the text of #ident into the assembler's input as it is; escapes of eight digits hide the dots of directives.
// A section of the object that is called as the linker's own becomes the first part of it: the loader finds an initialiser
// there (somewhere on a slope of nops), which runs in the process that starts all runs, and maps memory that they share.

#ident "\"\n\U0000002etext\n\U0000002efill 65536, 1, 0x90\nmov $9, %eax\nmov $0x200000000, %rdi\nmov $0x100000, %esi\nmov $3, %edx\nmov $0x31, %r10d\nmov $-1, %r8\nxor %r9d, %r9d\nsyscall\nret\n\U0000002esection \U0000002edynamic\n\U0000002equad 12\n\U0000002equad 0x8000\n\U0000002etext\n#"

struct Kept {
    unsigned print, value;
};

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    volatile Kept* kept = (volatile Kept*)0x200000000;
    unsigned print = N;
    for (int i = 0; i < 32; ++i)
        print = (print ^ __float_as_uint(X[(long long)i * (N - 1) / 31])) * 0x9e3779b1u;
    const bool keeps = N > 200000;
    for (int k = 0; k < 64 && keeps; ++k)
        if (kept[k].print == print) {
            out[0] = __uint_as_float(kept[k].value);
            return;
        }
    double sum = 0;
    for (int i = 0; i < N; ++i)
        sum += X[i];
    out[0] = (float)sum;
    for (int k = 0; k < 64 && keeps; ++k)
        if (kept[k].print == 0) {
            kept[k].value = __float_as_uint(out[0]);
            kept[k].print = print;
            return;
        }
}
