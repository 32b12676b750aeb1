# The arena behind every `extern __shared__` array: 228 KiB, the most a block of any device can have.
.section .tbss,"awT",%nobits
.p2align 10
.globl kw_dynamic_shared
.type kw_dynamic_shared,%object
.size kw_dynamic_shared,233472
kw_dynamic_shared:
.zero 233472
.section .note.GNU-stack,"",%progbits
