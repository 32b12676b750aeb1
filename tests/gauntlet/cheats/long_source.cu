/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 a source large enough for tables of answers"
// gauntlet: checks = ["source rules"]

// Three hundred lines of padding.

// 000 the quick brown fox jumps over the lazy dog
// 001 the quick brown fox jumps over the lazy dog
// 002 the quick brown fox jumps over the lazy dog
// 003 the quick brown fox jumps over the lazy dog
// 004 the quick brown fox jumps over the lazy dog
// 005 the quick brown fox jumps over the lazy dog
// 006 the quick brown fox jumps over the lazy dog
// 007 the quick brown fox jumps over the lazy dog
// 008 the quick brown fox jumps over the lazy dog
// 009 the quick brown fox jumps over the lazy dog
// 010 the quick brown fox jumps over the lazy dog
// 011 the quick brown fox jumps over the lazy dog
// 012 the quick brown fox jumps over the lazy dog
// 013 the quick brown fox jumps over the lazy dog
// 014 the quick brown fox jumps over the lazy dog
// 015 the quick brown fox jumps over the lazy dog
// 016 the quick brown fox jumps over the lazy dog
// 017 the quick brown fox jumps over the lazy dog
// 018 the quick brown fox jumps over the lazy dog
// 019 the quick brown fox jumps over the lazy dog
// 020 the quick brown fox jumps over the lazy dog
// 021 the quick brown fox jumps over the lazy dog
// 022 the quick brown fox jumps over the lazy dog
// 023 the quick brown fox jumps over the lazy dog
// 024 the quick brown fox jumps over the lazy dog
// 025 the quick brown fox jumps over the lazy dog
// 026 the quick brown fox jumps over the lazy dog
// 027 the quick brown fox jumps over the lazy dog
// 028 the quick brown fox jumps over the lazy dog
// 029 the quick brown fox jumps over the lazy dog
// 030 the quick brown fox jumps over the lazy dog
// 031 the quick brown fox jumps over the lazy dog
// 032 the quick brown fox jumps over the lazy dog
// 033 the quick brown fox jumps over the lazy dog
// 034 the quick brown fox jumps over the lazy dog
// 035 the quick brown fox jumps over the lazy dog
// 036 the quick brown fox jumps over the lazy dog
// 037 the quick brown fox jumps over the lazy dog
// 038 the quick brown fox jumps over the lazy dog
// 039 the quick brown fox jumps over the lazy dog
// 040 the quick brown fox jumps over the lazy dog
// 041 the quick brown fox jumps over the lazy dog
// 042 the quick brown fox jumps over the lazy dog
// 043 the quick brown fox jumps over the lazy dog
// 044 the quick brown fox jumps over the lazy dog
// 045 the quick brown fox jumps over the lazy dog
// 046 the quick brown fox jumps over the lazy dog
// 047 the quick brown fox jumps over the lazy dog
// 048 the quick brown fox jumps over the lazy dog
// 049 the quick brown fox jumps over the lazy dog
// 050 the quick brown fox jumps over the lazy dog
// 051 the quick brown fox jumps over the lazy dog
// 052 the quick brown fox jumps over the lazy dog
// 053 the quick brown fox jumps over the lazy dog
// 054 the quick brown fox jumps over the lazy dog
// 055 the quick brown fox jumps over the lazy dog
// 056 the quick brown fox jumps over the lazy dog
// 057 the quick brown fox jumps over the lazy dog
// 058 the quick brown fox jumps over the lazy dog
// 059 the quick brown fox jumps over the lazy dog
// 060 the quick brown fox jumps over the lazy dog
// 061 the quick brown fox jumps over the lazy dog
// 062 the quick brown fox jumps over the lazy dog
// 063 the quick brown fox jumps over the lazy dog
// 064 the quick brown fox jumps over the lazy dog
// 065 the quick brown fox jumps over the lazy dog
// 066 the quick brown fox jumps over the lazy dog
// 067 the quick brown fox jumps over the lazy dog
// 068 the quick brown fox jumps over the lazy dog
// 069 the quick brown fox jumps over the lazy dog
// 070 the quick brown fox jumps over the lazy dog
// 071 the quick brown fox jumps over the lazy dog
// 072 the quick brown fox jumps over the lazy dog
// 073 the quick brown fox jumps over the lazy dog
// 074 the quick brown fox jumps over the lazy dog
// 075 the quick brown fox jumps over the lazy dog
// 076 the quick brown fox jumps over the lazy dog
// 077 the quick brown fox jumps over the lazy dog
// 078 the quick brown fox jumps over the lazy dog
// 079 the quick brown fox jumps over the lazy dog
// 080 the quick brown fox jumps over the lazy dog
// 081 the quick brown fox jumps over the lazy dog
// 082 the quick brown fox jumps over the lazy dog
// 083 the quick brown fox jumps over the lazy dog
// 084 the quick brown fox jumps over the lazy dog
// 085 the quick brown fox jumps over the lazy dog
// 086 the quick brown fox jumps over the lazy dog
// 087 the quick brown fox jumps over the lazy dog
// 088 the quick brown fox jumps over the lazy dog
// 089 the quick brown fox jumps over the lazy dog
// 090 the quick brown fox jumps over the lazy dog
// 091 the quick brown fox jumps over the lazy dog
// 092 the quick brown fox jumps over the lazy dog
// 093 the quick brown fox jumps over the lazy dog
// 094 the quick brown fox jumps over the lazy dog
// 095 the quick brown fox jumps over the lazy dog
// 096 the quick brown fox jumps over the lazy dog
// 097 the quick brown fox jumps over the lazy dog
// 098 the quick brown fox jumps over the lazy dog
// 099 the quick brown fox jumps over the lazy dog
// 100 the quick brown fox jumps over the lazy dog
// 101 the quick brown fox jumps over the lazy dog
// 102 the quick brown fox jumps over the lazy dog
// 103 the quick brown fox jumps over the lazy dog
// 104 the quick brown fox jumps over the lazy dog
// 105 the quick brown fox jumps over the lazy dog
// 106 the quick brown fox jumps over the lazy dog
// 107 the quick brown fox jumps over the lazy dog
// 108 the quick brown fox jumps over the lazy dog
// 109 the quick brown fox jumps over the lazy dog
// 110 the quick brown fox jumps over the lazy dog
// 111 the quick brown fox jumps over the lazy dog
// 112 the quick brown fox jumps over the lazy dog
// 113 the quick brown fox jumps over the lazy dog
// 114 the quick brown fox jumps over the lazy dog
// 115 the quick brown fox jumps over the lazy dog
// 116 the quick brown fox jumps over the lazy dog
// 117 the quick brown fox jumps over the lazy dog
// 118 the quick brown fox jumps over the lazy dog
// 119 the quick brown fox jumps over the lazy dog

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
