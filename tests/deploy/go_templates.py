"""Renders the subset of Go's templates, and of Helm's functions, that deploy/helm uses; anything else is refused.

Numbers of values are floats, as Helm reads them, and are printed as Go prints floats: 6553500 as 6.5535e+06.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.deploy.go_functions import FUNCTIONS, printed, truth


class TemplateError(Exception):
    """Something outside of the subset, or a value that is not there."""


_ACTION = re.compile(r"\{\{(-\s)?\s*(.*?)\s*(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|:=|[(),|]|\$?[\w.]+|\$|\.)')
_BLOCKS = ("if", "range", "with", "define")


@dataclass
class Block:
    """Text (`kind` ""), an output ("="), a variable (":="), or what stands between an opening action and its `end`."""

    kind: str
    text: str = ""
    inside: list[Block] = field(default_factory=list)
    otherwise: list[Block] = field(default_factory=list)


@dataclass
class Scope:
    dot: Any
    variables: dict[str, Any]

    def inner(self, dot: Any, **more: Any) -> Scope:
        return Scope(dot, {**self.variables, **more})


class Templates:
    """The templates of one chart; `files` is what `.Files.Get` reads."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.defined: dict[str, list[Block]] = {}
        self._files = {name: self._parsed(text) for name, text in sources.items()}

    def render(self, name: str, root: Mapping[str, Any]) -> str:
        return self._run(self._files[name], Scope(root, {"$": root}))

    # -- reading --

    def _parsed(self, source: str) -> list[Block]:
        pieces = _pieces(source)
        blocks, ended = self._blocks(pieces)
        if ended:
            raise TemplateError(f"{{{{ {ended} }}}} closes nothing")
        return blocks

    def _blocks(self, pieces: Iterator[tuple[bool, str]]) -> tuple[list[Block], str]:
        """Up to the `end` or `else` that closes them, which is the second value."""
        blocks: list[Block] = []
        for is_action, text in pieces:
            word = text.split(None, 1)[0] if is_action and text else ""
            if not is_action:
                blocks.append(Block("", text))
            elif word in ("end", "else"):
                return blocks, text
            elif word in _BLOCKS:
                made = self._block(word, text[len(word) :].strip(), pieces)
                if word == "define":
                    self.defined[made.text.strip('"')] = made.inside
                else:
                    blocks.append(made)
            elif not text.startswith("/*"):
                blocks.append(Block(":=" if re.match(r"\$\w+\s*:=", text) else "=", text))
        return blocks, ""

    def _block(self, kind: str, condition: str, pieces: Iterator[tuple[bool, str]]) -> Block:
        made = Block(kind, condition)
        made.inside, ended = self._blocks(pieces)
        if ended.startswith("else "):
            word, _, rest = ended.removeprefix("else ").partition(" ")
            if word != "if":
                raise TemplateError(f"{{{{ {ended} }}}} is outside of the subset")
            made.otherwise = [self._block("if", rest, pieces)]
        elif ended == "else":
            made.otherwise, ended = self._blocks(pieces)
        if not ended or (ended != "end" and not ended.startswith("else ")):
            raise TemplateError(f"{{{{ {kind} {condition} }}}} has no end")
        return made

    # -- running --

    def _run(self, blocks: list[Block], scope: Scope) -> str:
        return "".join(self._one(block, scope) for block in blocks)

    def _one(self, block: Block, scope: Scope) -> str:
        match block.kind:
            case "":
                return block.text
            case "=":
                return printed(self.value(block.text, scope))
            case ":=":
                name, _, text = block.text.partition(":=")
                scope.variables[name.strip()] = self.value(text, scope)
                return ""
            case "if":
                return self._run(
                    block.inside if truth(self.value(block.text, scope)) else block.otherwise, scope.inner(scope.dot)
                )
            case "with":
                value = self.value(block.text, scope)
                return (
                    self._run(block.inside, scope.inner(value)) if truth(value) else self._run(block.otherwise, scope)
                )
            case _:
                return self._range(block, scope)

    def _range(self, block: Block, scope: Scope) -> str:
        names, text = re.match(r"(?:\$(\w+), \$(\w+) := )?(.*)", block.text, re.DOTALL).group(1, 2), block.text  # type: ignore[union-attr]
        value = self.value(text.partition(":=")[2] if names[0] else text, scope)
        if not truth(value):
            return self._run(block.otherwise, scope)
        pairs = sorted(value.items()) if isinstance(value, Mapping) else list(enumerate(value))
        named = [{f"${names[0]}": key, f"${names[1]}": one} if names[0] else {} for key, one in pairs]
        return "".join(
            self._run(block.inside, scope.inner(one, **more)) for (_, one), more in zip(pairs, named, strict=True)
        )

    # -- expressions --

    def value(self, text: str, scope: Scope) -> Any:
        tokens = _tokens(text)
        found = self._pipeline(tokens, scope)
        if tokens:
            raise TemplateError(f"{{{{ {text} }}}}: {tokens[0]} is outside of the subset")
        return found

    def _pipeline(self, tokens: list[str], scope: Scope) -> Any:
        found = self._command(tokens, scope, ())
        while tokens and tokens[0] == "|":
            tokens.pop(0)
            found = self._command(tokens, scope, (found,))
        return found

    def _command(self, tokens: list[str], scope: Scope, last: tuple[Any, ...]) -> Any:
        first = tokens[0]
        if re.fullmatch(r"[a-z]\w*", first) and first not in ("true", "false"):
            tokens.pop(0)
            return self._call(first, [*self._arguments(tokens, scope), *last])
        if first.startswith(".Files.Get"):
            tokens.pop(0)
            return self._call("Files.Get", [scope.variables["$"], *self._arguments(tokens, scope)])
        if last:
            raise TemplateError(f"{first} takes no pipeline")
        return self._operand(tokens, scope)

    def _arguments(self, tokens: list[str], scope: Scope) -> list[Any]:
        found = []
        while tokens and tokens[0] not in ("|", ")"):
            found.append(self._operand(tokens, scope))
        return found

    def _operand(self, tokens: list[str], scope: Scope) -> Any:
        token = tokens.pop(0)
        if token == "(":
            found = self._pipeline(tokens, scope)
            if not tokens or tokens.pop(0) != ")":
                raise TemplateError("a bracket is not closed")
            return found
        if token.startswith('"'):
            return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        if token in ("true", "false"):
            return token == "true"
        if token.isdecimal():
            return int(token)
        if token.startswith("$"):
            name, _, path = token.partition(".")
            return _member(scope.variables[name], path)
        if token.startswith("."):
            return _member(scope.dot, token[1:])
        raise TemplateError(f"{token} is outside of the subset")

    def _call(self, name: str, arguments: list[Any]) -> Any:
        if name == "include":
            if arguments[0] not in self.defined:
                raise TemplateError(f"no template is named {arguments[0]}")
            return self._run(self.defined[arguments[0]], Scope(arguments[1], {"$": arguments[1]}))
        function: Callable[..., Any] | None = FUNCTIONS.get(name)
        if function is None:
            raise TemplateError(f"the function {name} is outside of the subset")
        return function(*arguments)


def _pieces(source: str) -> Iterator[tuple[bool, str]]:
    """(is it an action, its text), with the white space that `{{-` and `-}}` take away gone."""
    at, trim = 0, False
    for found in _ACTION.finditer(source):
        text = source[at : found.start()]
        text = text.lstrip() if trim else text
        yield False, text.rstrip() if found[1] else text
        yield True, found[2]
        at, trim = found.end(), bool(found[3])
    if "{{" in source[at:]:
        raise TemplateError("an action is not closed")
    yield False, source[at:].lstrip() if trim else source[at:]


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise TemplateError(f"{text[at:]!r} is outside of the subset")
        found.append(token[1])
        at = token.end()
    return found


def _member(value: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        if not isinstance(value, Mapping):
            raise TemplateError(f".{path}: {name} of what is not a map")
        if name not in value:
            raise TemplateError(f".{path}: values.yaml has no {name}")
        value = value[name]
    return value
