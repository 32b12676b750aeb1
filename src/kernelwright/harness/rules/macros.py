"""What token pasting can make: words put together by ``##`` escape a look at single tokens."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from kernelwright.core.lexer import Directive, Lexed, Token

Definitions = Mapping[str, Sequence[Directive]]


def definitions(text: Lexed) -> dict[str, list[Directive]]:
    """All definitions of every macro: which of them holds where is not followed."""
    found: dict[str, list[Directive]] = {}
    for directive in text.directives:
        if directive.name == "define" and directive.tokens:
            found.setdefault(directive.tokens[0].text, []).append(directive)
    return found


def pasted(text: Lexed, words: Collection[str]) -> Iterator[tuple[str, int]]:
    """Words that pasting macros of this text can make from what they hold and are given, with the macro's offset."""
    macros = definitions(text)
    pasting = holding(macros, lambda token: token.text == "##")
    if not pasting:
        return
    pieces = pieces_of(text, macros, pasting)
    offset = macros[next(iter(pasting))][0].offset
    for word in words:
        if _made_of(word, pieces):
            yield word, offset


def takes_arguments(directive: Directive) -> bool:
    """Whether a definition is one of ``f(x)``."""
    name, *rest = directive.tokens
    return bool(rest) and rest[0].text == "(" and rest[0].offset == name.offset + len(name.text)


def parts(directive: Directive) -> tuple[tuple[str, ...], tuple[Token, ...]]:
    """Parameters and body of a definition."""
    rest = directive.tokens[1:]
    if not directive.tokens or not takes_arguments(directive):
        return (), rest
    end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
    return tuple(t.text for t in rest[:end] if t.kind == "word"), rest[end + 1 :]


def holding(macros: Definitions, wanted: Callable[[Token], bool]) -> dict[str, None]:
    """Names of macros with a wanted token, of their own or through another macro; in order of finding."""
    users: dict[str, list[str]] = {}
    todo = []
    for name, directives in macros.items():
        for token in chain.from_iterable(directive.tokens[1:] for directive in directives):
            if wanted(token):
                todo.append(name)
            elif token.kind == "word" and token.text in macros:
                users.setdefault(token.text, []).append(name)
    return reached(todo, users)


def reached(names: Iterable[str], users: Mapping[str, Iterable[str]]) -> dict[str, None]:
    """The names, their users, theirs, and so on; in order of finding."""
    todo = list(names)
    found: dict[str, None] = {}
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = None
            todo.extend(users.get(name, ()))
    return found


def pieces_of(text: Lexed, macros: Definitions, pasting: Collection[str]) -> frozenset[str]:
    """Words and numbers in some macros (called pasting here) and in their arguments, and what macros among them stand for."""
    found: set[str] = set()
    todo = [token for name in pasting for directive in macros[name] for token in directive.tokens[1:]]
    taking = {name for name in pasting if any(map(takes_arguments, macros[name]))}
    for stream in (text.tokens, *(d.tokens[d.name in {"define", "undef"} :] for d in text.directives)):
        todo.extend(_arguments(stream, pasting, taking))
    while todo:
        token = todo.pop()
        if token.kind not in {"word", "number"} or token.text in found:
            continue
        found.add(token.text)
        for directive in macros.get(token.text, ()):
            todo.extend(directive.tokens[1:])
    return frozenset(found)


def _arguments(stream: Sequence[Token], pasting: Collection[str], taking: Collection[str]) -> Iterator[Token]:
    depth, called = 0, False
    for index, token in enumerate(stream):
        if token.text in taking and [t.text for t in stream[index + 1 : index + 2]] != ["("]:
            yield from stream  # handed to another macro, which gives it anything
            return
        if depth == 0:
            called = called and token.text == "("
            if called:
                depth = 1
            else:
                called = token.kind == "word" and token.text in pasting
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        called = depth > 0
        yield token


def _made_of(word: str, pieces: Collection[str]) -> bool:
    """Whether the word is two or more of the pieces in a row; any macro of elsewhere may stand for a number."""
    reach = [True] + [False] * len(word)
    for end in range(1, len(word) + 1):
        reach[end] = any(
            reach[start]
            and end - start < len(word)
            and (word[start:end] in pieces or word[start:end].isdecimal())
            for start in range(end)
        )
    return reach[-1]
