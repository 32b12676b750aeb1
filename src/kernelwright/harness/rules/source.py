"""Rules on a candidate's text, looked at before anything is compiled.

Text rules are early advice that a model can act on; what decides is the binary (``binary.py``) and how the
candidate behaves. Legal and therefore not looked for: ``createpolicy``, ``evict_last`` and prefetches (the harness
clears L2 between runs, so that they help nobody beyond one run), ``%globaltimer`` and clocks (outputs that depend
on them differ from run to run, which the check on equal inputs finds).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.core.lexer import Directive, Lexed, Token, lex
from kernelwright.core.plan import Plan, parse_plan
from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.alike import macros_of, unlike
from kernelwright.harness.rules.broken import Broken
from kernelwright.harness.rules.host import HOST_WORDS, assembler, host_code
from kernelwright.harness.rules.linkage import host_symbols
from kernelwright.harness.rules.macros import definitions, pasted
from kernelwright.harness.rules.outliers import check_outliers
from kernelwright.harness.rules.plans import check_plan
from kernelwright.harness.rules.sizes import check_sizes
from kernelwright.harness.rules.strings import joined, made, unclear
from kernelwright.harness.rules.templates import host_templates
from kernelwright.harness.rules.values import host_values

_RENAMING: Final = frozenset({"redefine_extname", "weak", "push_macro", "pop_macro"})
_KNOWN: Final = frozenset(
    (
        "",
        "define",
        "undef",
        "if",
        "ifdef",
        "ifndef",
        "elif",
        "elifdef",
        "elifndef",
        "else",
        "endif",
        "error",
        "warning",
    )
)
_PRAGMA: Final = re.compile(
    r"unroll|nounroll|once|pack|message|(?:end)?region|(?:nv_)?diag_\w+|nv_\w+|hd_warning_disable"
)
_LONG_PRAGMAS: Final = frozenset(
    {("GCC", "unroll"), ("GCC", "ivdep"), ("GCC", "diagnostic"), ("clang", "loop")}
)
_ASM: Final = ("asm", "__asm", "__asm__")
_BOUNDS: Final = (
    "__launch_bounds__",
    "__maxnreg__",
    "__block_size__",
    "launch_bounds",
    "maxnreg",
    "block_size",
)
_TENSOR: Final = ("nvcuda", "wmma")
_TENSOR_HEADERS: Final = ("mma.h", "crt/mma.h")
_PROGRAMMATIC: Final = (
    "cudaTriggerProgrammaticLaunchCompletion", "cudaGridDependencySynchronize", "griddepcontrol",
)  # fmt: skip
_LAUNCHES: Final = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaLaunchDevice",
    "cudaLaunchCooperativeKernel",
)
_PROBES: Final = ("__has_include", "__has_include_next", "__has_embed")
_MOMENTS: Final = ("__DATE__", "__TIME__", "__TIMESTAMP__")
_MAKING: Final = re.compile(
    r"(?:_|NV_|CCCL_|CUB_|THRUST_)\w*(?:CONCAT|STRING|_CAT(?![a-zA-Z])|_STR(?![a-zA-Z]))\w*"
)
_NV_TYPES: Final = re.compile(r"__nv_(?:fast_)?(?:bfloat|half|fp\d)")
_TENSOR_PTX: Final = re.compile(r"(?<![\w.])(?:w?mma|wgmma|tcgen05)\s*\.")
_FILE_PTX: Final = re.compile(r"\.(?:incbin|include|import)\b")


def check_source(source: str, rules: CandidateRules) -> Broken | None:
    """The first rule that the text of a candidate breaks, with its line; ``None`` when it keeps all.

    Takes time linear in the text, at most about a second for a text of the size allowed. Never raises for a source.
    """
    size = len(source.encode(errors="replace"))
    if size > rules.max_source_bytes:
        return Broken(f"the source has {size} bytes, {rules.max_source_bytes} are allowed: shorten it")
    text = lex(source)
    if text.doubt is not None:
        offset, what = text.doubt
        return _at(text, offset, f"{what}, which compilers read differently: write it plainly")
    plan = _plan(source)
    of_plan = frozenset(macros_of(plan) if plan else ())
    looks = (_directives(text, rules, of_plan), _words(text, rules), _strings(text, rules))
    broken = next(chain(*looks, (_at(text, *fault) for fault in host_code(text, of_plan))), None)
    if broken is None and rules.portable:
        faults = chain(host_templates(text), host_symbols(text), unlike(text, plan), host_values(text))
        broken = next((_at(text, *fault) for fault in faults), None)
    if broken is None and (rules.no_size_branches or rules.deterministic):
        broken = (check_plan(plan, rules) if plan else None) or check_sizes(text, rules, plan)
    if broken is None and rules.no_size_branches:
        broken = check_outliers(text, rules, plan)
    return broken


def _plan(source: str) -> Plan | None:
    try:
        return parse_plan(source)
    except UserError:
        return None


def _at(text: Lexed, offset: int, what: str) -> Broken:
    return Broken(f"line {text.line(offset)}: {what}")


# -- directives -------------------------------------------------------------------------------------------


def _directives(text: Lexed, rules: CandidateRules, of_plan: Collection[str]) -> Iterator[Broken]:
    macros = definitions(text).keys() | of_plan
    for directive in text.directives:
        fault = _directive_fault(directive, rules, macros)
        if fault:
            yield _at(text, directive.offset, fault)


def _directive_fault(directive: Directive, rules: CandidateRules, macros: Collection[str]) -> str:
    name, header = directive.name, directive.header
    if name == "line" or name[:1].isdigit():
        return "a #line directive hides where code stands: remove it"
    if name in {"embed", "import", "include_next"}:
        return f"#{name} reads other files: a candidate is one file, remove it"
    if name == "include":
        return _include_fault(header, rules)
    if name == "pragma":
        return _pragma_fault(directive.tokens, macros)
    if name not in _KNOWN:
        # g++ writes the text of #ident into the assembler's input as it is, and others may do so with theirs.
        return f"#{name[:40]} is no directive of device code: remove it"
    return ""


def _pragma_fault(tokens: Sequence[Token], macros: Collection[str]) -> str:
    """Of pragmas only those that tune, whose names no macro changes: others rename, align, or write to the assembler."""
    words = [token.text for token in tokens]
    if words[:1] and words[0] in _RENAMING:
        return f"#pragma {words[0]} makes names mean something else: remove it"
    if words[:1] and not (_PRAGMA.fullmatch(words[0]) or tuple(words[:2]) in _LONG_PRAGMAS):
        return f"#pragma {' '.join(words[:2])[:80]} is none of device code: remove it"
    named = words[: 2 if tuple(words[:2]) in _LONG_PRAGMAS else 1]
    if macro := next((word for word in named if word in macros), ""):
        return f"#pragma {macro} is a macro, and may be anything: write another"
    return ""


def _include_fault(header: str, rules: CandidateRules) -> str:
    path = header[1:-1].strip()
    if not path:
        return "#include of a macro hides what is included: write the header's name"
    parts = re.split(r"[/\\]", path)
    if path.startswith(("/", "~", "\\")) or ".." in parts or ":" in path:
        return f"includes the host path {path[:80]!r}: only headers of device code may be included"
    if rules.allowed_headers and path not in rules.allowed_headers:
        allowed = ", ".join(rules.allowed_headers)
        return f"includes {path[:80]!r}, which the rules do not allow (allowed: {allowed})"
    if rules.no_tensor_cores and path in _TENSOR_HEADERS:
        return f"includes {path!r}, but the rules forbid tensor cores: compute without them"
    return ""


# -- words ------------------------------------------------------------------------------------------------


def _forbidden(rules: CandidateRules) -> dict[str, str]:
    """Words that code must not have, each with what to say."""
    words = dict.fromkeys(_PROGRAMMATIC, "a plan's launches run in order: programmatic launch is not allowed")
    words |= dict.fromkeys(_LAUNCHES, "device code launches no kernels: give them as [[launch]] of the plan")
    words |= dict.fromkeys(_PROBES, "looking for files is not allowed: remove it")
    words |= dict.fromkeys(_MOMENTS, "the same text must always give the same binary: do without it")
    words |= HOST_WORDS
    if rules.no_inline_ptx:
        words |= dict.fromkeys(_ASM, "the rules forbid inline PTX: use CUDA C++")
    if rules.no_launch_bounds:
        words |= dict.fromkeys(_BOUNDS, "the rules forbid launch bounds: remove them")
    if rules.no_tensor_cores:
        words |= dict.fromkeys(_TENSOR, "the rules forbid tensor cores: compute without them")
    for word in rules.banned_words:
        words |= dict.fromkeys(
            _in_library(word), f"the device library's name for {word!r}, a word that the rules ban"
        )
    return words | dict.fromkeys(rules.banned_words, "the rules ban this word: do without it")


def _in_library(word: str) -> Iterator[str]:
    """Names under which libdevice has an intrinsic: ``__nv_fmul_rz``, ``__nv_fast_expf``; not those of types."""
    if word.isidentifier():
        names = (f"__nv_{fast}{word.removeprefix('__')}" for fast in ("", "fast_"))
        yield from (name for name in names if not _NV_TYPES.match(name))


def _words(text: Lexed, rules: CandidateRules) -> Iterator[Broken]:
    forbidden = _forbidden(rules)
    phrases = {tuple(_split(word)): word for word in forbidden if not word.isidentifier()}
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        for index, token in enumerate(stream):
            if token.text in forbidden and token.kind == "word":
                yield _at(text, token.offset, f"{token.text!r}: {forbidden[token.text]}")
            elif token.text == "<<<":
                yield _at(text, token.offset, "'<<<' launches a kernel: give it as a [[launch]] of the plan")
            for phrase, word in phrases.items():
                if (
                    token.text == phrase[0]
                    and tuple(t.text for t in stream[index : index + len(phrase)]) == phrase
                ):
                    yield _at(text, token.offset, f"{word!r}: {forbidden[word]}")
    own = definitions(text)
    for token in text.all_tokens:
        if token.kind == "word" and _MAKING.fullmatch(token.text) and token.text not in own:
            yield _at(
                text,
                token.offset,
                f"{token.text!r} may be a header's macro that pastes: define one of your own",
            )
    for word, offset in pasted(text, forbidden):
        yield _at(text, offset, f"pastes tokens that give {word!r}: {forbidden[word]}")


def _split(word: str) -> list[str]:
    return [token.text for token in lex(word).tokens] or [word]


# -- strings ----------------------------------------------------------------------------------------------


def _strings(text: Lexed, rules: CandidateRules) -> Iterator[Broken]:
    """Inline PTX stands in strings, whatever macros hide the ``asm``; neighbours are one string."""
    words = [name for word in rules.banned_words if word for name in (word, *_in_library(word))]
    banned = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in words]
    for token in text.all_tokens:
        if token.kind == "string" and (escape := unclear(token)):
            yield _at(
                text, token.offset, f"{escape!r} is an escape to some compilers only: write the character"
            )
    try:
        of_macros = list(dict.fromkeys(made(text)))
    except TimeoutError:
        yield Broken("strings that macros make are too many to be looked at: write them out")
        return
    for offset, content in chain(joined(text), of_macros):
        if found := _FILE_PTX.search(content):
            yield _at(text, offset, f"the directive {found[0]!r} reads files: remove it")
        if name := assembler(content):
            yield _at(text, offset, f"{name!r} is a directive of an assembler, not of inline PTX: remove it")
        if "griddepcontrol" in content:
            yield _at(text, offset, "griddepcontrol: programmatic launch is not allowed: remove it")
        if rules.no_tensor_cores and (found := _TENSOR_PTX.search(content)):
            yield _at(
                text, offset, f"{found[0]!r} in PTX: the rules forbid tensor cores: compute without them"
            )
        for pattern in banned:
            if found := pattern.search(content):
                yield _at(text, offset, f"{found[0]!r} in a string: the rules ban this word: do without it")


def words_in_force(rules: CandidateRules) -> Iterable[str]:
    """Words that a text under these rules must not have."""
    return _forbidden(rules)
