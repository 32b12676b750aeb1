"""What token pasting can make: words put together by ``##`` escape a look at single tokens."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from kernelwright.core.lexer import Directive, Lexed, Token


def pasted(text: Lexed, words: Collection[str]) -> Iterator[tuple[str, int]]:
    """Words that pasting macros of this text can make from what they hold and are given, with the macro's offset."""
    macros = {d.tokens[0].text: d for d in text.directives if d.name == "define" and d.tokens}
    pasting = _pasting(macros)
    if not pasting:
        return
    pieces = _pieces(text, macros, pasting)
    offset = macros[next(iter(pasting))].offset
    for word in words:
        if _made_of(word, pieces):
            yield word, offset


def _pasting(macros: dict[str, Directive]) -> dict[str, None]:
    """Names of macros that paste, themselves or through another one; in order of finding."""
    users: dict[str, list[str]] = {}
    todo = []
    for name, directive in macros.items():
        for token in directive.tokens[1:]:
            if token.text == "##":
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


def _pieces(text: Lexed, macros: dict[str, Directive], pasting: Collection[str]) -> frozenset[str]:
    """Words and numbers in pasting macros and in their arguments, and what macros among them stand for."""
    found: set[str] = set()
    todo = [token for name in pasting for token in macros[name].tokens[1:]]
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        todo.extend(_arguments(stream, pasting))
    while todo:
        token = todo.pop()
        if token.kind not in {"word", "number"} or token.text in found:
            continue
        found.add(token.text)
        if token.text in macros:
            todo.extend(macros[token.text].tokens[1:])
    return frozenset(found)


def _arguments(stream: tuple[Token, ...], pasting: Collection[str]) -> Iterator[Token]:
    depth, called = 0, False
    for token in stream:
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
    """Whether the word is two or more of the pieces in a row."""
    reach = [True] + [False] * len(word)
    for end in range(1, len(word) + 1):
        reach[end] = any(
            reach[start] and word[start:end] in pieces and end - start < len(word) for start in range(end)
        )
    return reach[-1]
