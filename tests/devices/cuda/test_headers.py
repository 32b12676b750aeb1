from kernelwright.devices.cuda.headers import included, prelude


def test_what_looks_like_an_include_in_a_comment_is_none() -> None:
    source = '/*\n#include <cuda/../../secret>\n*/\n#include <mma.h>\n# include "x.h" // once more\n#include <mma.h>\n'
    assert included(source) == ("mma.h", "x.h")
    assert "secret" not in prelude(source, {})
