"""The torch side of an export: tensors in, buffers allocated, the launcher called, the output given back."""

from typing import Final

from kernelwright.core.case import ITEM_BYTES
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.export.launcher import Launcher
from kernelwright.leaderboard.export.names import Subject
from kernelwright.problems.spec import Argument

KINDS: Final = {
    "float16": "at::kHalf",
    "float32": "at::kFloat",
    "float64": "at::kDouble",
    "int32": "at::kInt",
    "int64": "at::kLong",
    "uint8": "at::kByte",
}
_HELPERS: Final = """
// Device code reads dense, aligned arrays: anything else is copied first.
static at::Tensor dense(const at::Tensor& tensor, at::ScalarType kind, const char* name)
{
    TORCH_CHECK(tensor.is_cuda() && tensor.scalar_type() == kind, name, ": wrong device or dtype");
    const bool aligned = reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 16 == 0;
    return tensor.is_contiguous() && aligned ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

static at::Tensor buffer(at::IntArrayRef shape, at::ScalarType kind)
{
    return at::empty(shape, at::TensorOptions().device(at::kCUDA).dtype(kind));
}
"""


def torch_side(subject: Subject, launcher: Launcher) -> str:
    """C++ with a function ``run`` of the board's items that the export needs, in their order."""
    extents, launch = launcher.declarations
    lines = ["#include <torch/extension.h>\n", f"{extents};", f"{launch};", _HELPERS]
    returns = "void" if subject.abi.returns in subject.abi.items else "at::Tensor"
    parameters = [_parameter(subject, launcher, name) for name in passed(subject)]
    lines += [f"{returns} run({', '.join(parameters)})", "{"]
    lines += [
        f"    {line}" for line in [*_sizes(subject), *_buffers(subject, launcher), *_call(subject, launcher)]
    ]
    return "\n".join([*lines, "}", ""])


def passed(subject: Subject) -> tuple[str, ...]:
    """The board's items that the export needs."""
    return tuple(item for item in subject.abi.items if item in subject.by_name or item in subject.sizes)


def _parameter(subject: Subject, launcher: Launcher, name: str) -> str:
    argument = subject.by_name.get(name)
    if argument is None:
        return f"int64_t {subject.value(name)}"
    if argument.role == "scalar":
        kind = next(kind for a, kind in launcher.given_scalars if a is argument)
        return f"{'double' if kind in {'float', 'double'} else 'int64_t'} {subject.value(name)}"
    return f"at::Tensor {_tensor(subject, name)}"


def _tensor(subject: Subject, name: str) -> str:
    return f"t_{subject.renames[name]}"


def _sizes(subject: Subject) -> list[str]:
    lines = []
    for size in subject.sizes:
        if size in subject.abi.items:
            continue
        axis = subject.abi.sizes[size]
        lines.append(
            f"const int64_t {subject.value(size)} = {_tensor(subject, axis.argument)}.size({axis.axis});"
        )
    return lines


def _buffers(subject: Subject, launcher: Launcher) -> list[str]:
    lines = [_given(subject, a) for a in subject.arrays if a.name in subject.abi.items]
    scratch = subject.candidate.template.plan.scratch
    dims = sum(len(a.shape or ()) for a in launcher.allocated) + len(scratch)
    if not dims:
        return lines
    sizes = "".join(f", {subject.value(size)}" for size in subject.sizes)
    lines += [f"int64_t extents[{dims}];", f"kernelwright_extents(extents{sizes});"]
    index = 0
    for argument in launcher.allocated:
        rank = len(argument.shape or ())
        shape = ", ".join(f"extents[{index + axis}]" for axis in range(rank))
        kind = _kind(argument)
        lines.append(f"const at::Tensor {subject.buffer(argument.name)} = buffer({{{shape}}}, {kind});")
        index += rank
    for entry in scratch:
        size = f"{ITEM_BYTES[entry.dtype]} * extents[{index}]"
        lines.append(f"const at::Tensor {subject.buffer(entry.name)} = buffer({{{size}}}, at::kByte);")
        index += 1
    return lines


def _given(subject: Subject, argument: Argument) -> str:
    tensor, name = _tensor(subject, argument.name), subject.renames[argument.name]
    return f'const at::Tensor {subject.buffer(argument.name)} = dense({tensor}, {_kind(argument)}, "{name}");'


def _call(subject: Subject, launcher: Launcher) -> list[str]:
    scratch = subject.candidate.template.plan.scratch
    names = [a.name for a in subject.arrays] + [s.name for s in scratch]
    values = [f"{subject.buffer(name)}.data_ptr()" for name in names]
    values += [f"static_cast<{kind}>({subject.value(a.name)})" for a, kind in launcher.given_scalars]
    values += [subject.value(size) for size in subject.sizes]
    lines = [f"kernelwright_launch({', '.join(values)});"]
    for argument in subject.arrays:
        if argument.is_output and argument.name in subject.abi.items:
            tensor, dense = _tensor(subject, argument.name), subject.buffer(argument.name)
            lines += [f"if (!{dense}.is_same({tensor}))", f"    {tensor}.copy_({dense});"]
    if subject.abi.returns not in subject.abi.items:
        lines.append(f"return {subject.buffer(subject.abi.returns)};")
    return lines


def _kind(argument: Argument) -> str:
    if argument.dtype not in KINDS:
        raise UserError(f"the dtype {argument.dtype} of {argument.name!r} cannot be exported")
    return KINDS[argument.dtype]
