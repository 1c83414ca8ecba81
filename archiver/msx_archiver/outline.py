"""Outlines of handlers: modules with their classes, their steps and what they say of overlap, made of sources. Nothing
of a handler is imported: it may need packages, or devices, that are not here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from msx_core.steps import MARK, STEPS, three_steps

OVERLAP = "overlap"
OWN_REASON = "sequential_reason"
CALLED = (*STEPS, "handle", "initialize")
_FORMS = ("abc", "typing", "typing_extensions")
"""Modules whose classes, as bases, have no steps."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceUnknownError(Exception):
    """A source is not there, or does not tell what a class has; the message is a clause that says which."""


class Source(NamedTuple):
    """`package`: the package that names with leading dots begin in."""

    tree: ast.Module
    package: str


class Outlines:
    """Each is made once. `find` returns the source of the module of a name, or None."""

    def __init__(self, find: Callable[[str], Source | None]) -> None:
        self._find = find
        self._known: dict[str, _Outline] = {}

    def module(self, name: str) -> ModuleType:
        """The handlers of a module, with what it imports under a handler's name. Raises SourceUnknownError."""
        return self.of(name).module()

    def of(self, name: str) -> _Outline:
        if name not in self._known:
            source = self._find(name)
            if source is None:
                raise SourceUnknownError(f"the source of {name} is not here")
            self._known[name] = _Outline(name, source, self)
        return self._known[name]

    def has(self, name: str) -> bool:
        return name in self._known or self._find(name) is not None


class _Outline:
    """Names of a module, whose values are made when they are wanted."""

    def __init__(self, name: str, source: Source, others: Outlines) -> None:
        self._name, self._package, self._others = name, source.package, others
        self._defined = {node.name: node for node in source.tree.body if isinstance(node, (ast.ClassDef, *_FUNCTIONS))}
        self._imported = dict(_imports(source.tree))
        self._made: dict[str, Any] = {}
        self._unfinished: set[str] = set()

    def module(self) -> ModuleType:
        """Classes whose bases are not known are left out. Raises SourceUnknownError where no other is there."""
        made, unknown = ModuleType(self._name), ""
        for name in (*self._defined, *(one for one in CALLED if one in self._imported)):
            try:
                setattr(made, name, self.value(name))
            except SourceUnknownError as error:
                unknown = unknown or str(error)
        if unknown and not any(hasattr(value, "handle") for value in vars(made).values()):
            raise SourceUnknownError(unknown)
        return made

    def value(self, name: str) -> Any:
        if name not in self._made:
            if name in self._unfinished:
                raise SourceUnknownError(f"{name} of {self._name} is made of itself")
            self._unfinished.add(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        if (node := self._defined.get(name)) is not None:
            return self._class(node) if isinstance(node, ast.ClassDef) else _function(node)
        if name == "object":
            return object
        module, attribute = self._origin(name)
        inside = f"{module}.{attribute}"
        if attribute and self._others.has(inside):
            return self._others.of(inside)
        outline = self._others.of(module)
        return outline.value(attribute) if attribute else outline

    def _origin(self, name: str) -> tuple[str, str]:
        """The module that a name is imported from, and its name there; "" for the module itself."""
        if name not in self._imported:
            raise SourceUnknownError(f"{name} of {self._name} is nothing that its source defines or imports")
        module, attribute, dots = self._imported[name]
        if not dots:
            return module, attribute
        parts = self._package.split(".")
        return ".".join([*parts[: len(parts) - dots + 1], *filter(None, [module])]), attribute

    def _class(self, node: ast.ClassDef) -> type[Any]:
        bases = [base for expression in node.bases if (base := self._base(expression)) is not None]
        try:
            return type(node.name, tuple(bases), {"__module__": self._name, **dict(_statements(node))})
        except TypeError:
            raise SourceUnknownError(f"the bases of {node.name} are no classes that go together") from None

    def _base(self, expression: ast.expr) -> Any:
        """A base class; None for one without steps."""
        if isinstance(expression, ast.Subscript):
            return self._base(expression.value)
        if isinstance(expression, ast.Name):
            return None if self._is_form(expression) else self.value(expression.id)
        if isinstance(expression, ast.Attribute):
            if self._is_form(expression.value):
                return None
            if isinstance(holder := self._base(expression.value), _Outline):
                return holder.value(expression.attr)
        raise SourceUnknownError(f"{self._name} computes a base class")

    def _is_form(self, expression: ast.expr) -> bool:
        return isinstance(expression, ast.Name) and self._imported.get(expression.id, ("",))[0] in _FORMS


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str, int]]]:
    """Names with the module, the name there ("" for the module itself) and the number of leading dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, (node.module or "", one.name, node.level)) for one in node.names)
        elif isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                yield one.asname or top, (one.name if one.asname else top, "", 0)


def _statements(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for statement in node.body:
        if isinstance(statement, _FUNCTIONS):
            if statement.name in CALLED or _is_private(statement.name):
                yield statement.name, _function(statement)
            elif statement.name == OWN_REASON:
                yield _SAYS, True
        for name, value in _assigned(statement):
            if name in CALLED:
                raise SourceUnknownError(f"{node.name} assigns {name}")
            if name == OVERLAP and not isinstance(value, ast.Constant):
                raise SourceUnknownError(f"{node.name} computes overlap")
            if isinstance(value, ast.Constant) and name == OVERLAP:
                yield OVERLAP, value.value


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    if value is not None:
        yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))


def _function(node: Function) -> Callable[..., Any]:
    """A function of the same kind, which has the mark of the three steps if that one has it."""
    stub = _STUBS[isinstance(node, ast.AsyncFunctionDef), any(_yields(node))]
    made = FunctionType(stub.__code__, {}, node.name)
    mark = next((one for one in node.decorator_list if isinstance(one, ast.Call) and _name(one.func) == MARK), None)
    return made if mark is None else three_steps(*_constants(mark))(made)


def _name(expression: ast.expr) -> str:
    """The last part of a name."""
    name: str = getattr(expression, "id", getattr(expression, "attr", ""))
    return name


def _constants(call: ast.Call) -> list[Any]:
    """The arguments of a call. Raises SourceUnknownError."""
    try:
        return [ast.literal_eval(one) for one in call.args]
    except ValueError:
        raise SourceUnknownError(f"the arguments of {_name(call.func)}() are computed") from None


def _is_private(name: str) -> bool:
    """Whether it may be a method that a `handle` calls, as its mark says."""
    return name.startswith("_") and not name.startswith("__")


def _yields(node: Function) -> Iterator[bool]:
    """True for each `yield` of a function, but not those of functions in it."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            yield True
        if not isinstance(one, (*_FUNCTIONS, ast.Lambda)):
            waiting += ast.iter_child_nodes(one)


def _plain(*_: Any) -> Any:
    return None


def _generator(*_: Any) -> Any:
    yield


async def _coroutine(*_: Any) -> Any:
    return None


async def _async_generator(*_: Any) -> Any:
    yield


_STUBS: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): _plain,
    (False, True): _generator,
    (True, False): _coroutine,
    (True, True): _async_generator,
}
_SAYS = "says_own_reason"


def has_own_reason(handler: Any) -> bool:
    """Whether it may find a reason against overlap as it is loaded."""
    return getattr(handler, _SAYS, False) is True
