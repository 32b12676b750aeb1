"""Thin, explicit use of NVRTC through ``cuda.bindings``; needs no device and no driver.

``cuda.core.Program`` wraps the same calls; here every option is spelled as NVRTC documents it, so the same code
serves all 13.x versions, and the log comes back unchanged.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.core.errors import HarnessError, MissingError

INSTALL = "pip install 'kernelwright[cuda]'"
_INVALID_OPTION = 5
_COMPILATION = 6
_FRONT_END = "-dlto"
"""Ends with what a linker would optimise and translate (NVRTC's documentation, "Supported Compile Options")."""


def load(module: str) -> Any:
    """A module of NVIDIA's Python packages. Raises MissingError with the install line."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingError(f"the cuda device needs {module} ({error}): {INSTALL}") from None


@dataclass(frozen=True)
class Compiled:
    """``cubin`` is ``None`` when the source does not compile; ``log`` holds errors, warnings, ptxas report."""

    cubin: bytes | None
    log: str


class OptionError(HarnessError):
    """NVRTC does not know an option or the architecture: the environment's fault, never a candidate's."""


class Nvrtc:
    """NVRTC's compiler. Calls release the GIL; one instance may serve several threads."""

    def __init__(self) -> None:
        self.api = load("cuda.bindings.nvrtc")
        try:
            _, major, minor = self.api.nvrtcVersion()
        except (RuntimeError, OSError) as error:
            raise MissingError(f"the NVRTC library cannot be loaded ({error}): {INSTALL}") from None
        self.release = (int(major), int(minor))
        self.version = f"{major}.{minor}"

    def compile(
        self,
        source: str,
        name: str,
        options: Sequence[str],
        headers: Mapping[str, str] | None = None,
        *,
        judge: bool = False,
    ) -> Compiled:
        """Compile to a cubin. Raises OptionError for options that this NVRTC does not know.

        ``judge``: whether it takes the source is all that is asked, which its front end knows before any code is made;
        the cubin of what it takes is empty then.
        """
        api, shims = self.api, headers or {}
        options = [*options, _FRONT_END] if judge else options
        program = self._checked(
            api.nvrtcCreateProgram(
                source.encode(),
                name.encode(),
                len(shims),
                [text.encode() for text in shims.values()] or None,
                [header.encode() for header in shims] or None,
            )
        )
        try:
            code = int(api.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])[0])
            log = self._text(program, api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog)
            if code == 0:
                cubin = b"" if judge else self._bytes(program, api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN)
                return Compiled(cubin, log)
        finally:
            api.nvrtcDestroyProgram(program)
        if code == _COMPILATION:
            return Compiled(None, log)
        kind = OptionError if code == _INVALID_OPTION else HarnessError
        raise kind(f"NVRTC {self.version} failed with {api.nvrtcResult(code).name}: {log.strip()[:500]}")

    def _checked(self, result: tuple[Any, ...]) -> Any:
        if int(result[0]) != 0:
            raise HarnessError(f"NVRTC {self.version} failed with {result[0].name}")
        return result[1] if len(result) > 1 else None

    def _bytes(self, program: Any, size: Any, get: Any) -> bytes:
        # A bytearray would be cleaner, but the binding takes the address of a bytes object's own storage.
        buffer = b"\0" * int(self._checked(size(program)))
        self._checked(get(program, buffer))
        return buffer

    def _text(self, program: Any, size: Any, get: Any) -> str:
        return self._bytes(program, size, get).decode("utf-8", "replace").replace("\0", "").strip()
