from kernelwright.devices.cuda.ptxas import parse_report

NEW = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 48 bytes cumulative stack size, 132 bytes smem
ptxas info    : Compile time = 3.770 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
OLD = """ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'
ptxas info    : Function properties for helper
    96 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for _Z1kPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 360 bytes cmem[0], 16 bytes cmem[3]
"""


def test_current_format() -> None:
    first, second = parse_report(NEW)
    assert (first.name, first.registers, first.spill_bytes, first.stack_bytes) == ("k", 32, 44, 48)
    assert (first.static_shared_bytes, first.constant_bytes) == (132, None)
    assert (second.name, second.registers, second.spill_bytes, second.static_shared_bytes) == (
        "plain",
        8,
        0,
        0,
    )


def test_older_format_and_device_functions() -> None:
    (kernel,) = parse_report(OLD)
    assert (kernel.registers, kernel.stack_bytes, kernel.constant_bytes) == (12, 0, 376)


def test_unknown_stays_unknown() -> None:
    assert parse_report("") == ()
    assert parse_report("ptxas info    : Used 12 registers") == ()
    (kernel,) = parse_report("ptxas info : Compiling entry function 'k' for 'sm_90a'\nsomething new\n")
    assert kernel.registers is None
    assert kernel.spill_bytes is None
    assert kernel.static_shared_bytes is None
