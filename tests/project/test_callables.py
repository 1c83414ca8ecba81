"""A callable is given to its owner by the constructor or a method: no attribute of one is set from outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("sdk", "archiver", "backend", "frontend", "compat")

KNOWN = {
    "report_progress",  # of `Context`, which handlers see as TorchServe's: the worker has parts of it before others
    "lead",
    "_flush",
    "encoder",  # of a request: what its reader has found out about it, as `input`
    "caller",  # of a `Model` of a servable, which its author's module declares before there is a worker
}

ALIAS, OTHER = (
    re.compile(rf"^(\w+)(?:: TypeAlias)? = {what}", re.MULTILINE) for what in (r"Callable\[", r"(?!Callable\[)")
)


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text() for root in PACKAGES for path in sorted((ROOT / root).rglob("*.py"))}


@cache
def callables() -> set[str]:
    """Attributes of classes that are annotated as Callable, or as a name that stands for one."""
    aliases, others = ({name for text in texts().values() for name in one.findall(text)} for one in (ALIAS, OTHER))
    names = {"Callable", *aliases - others}
    candidate = re.compile(rf"^ +(self\.)?\w+: .*\b({'|'.join(names)})\b", re.MULTILINE)
    trees = (ast.parse(text) for text in texts().values() if candidate.search(text))
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {name for one in classes for name in annotated(one, names)}


def annotated(owner: ast.ClassDef, names: set[str]) -> Iterator[str]:
    """Names of a class's callables; a frozen class has none that can be set."""
    fixed = any("frozen=True" in ast.unparse(one) for one in owner.decorator_list)
    fixed = fixed or any(ast.unparse(base) == "NamedTuple" for base in owner.bases)
    for node in (node for node in ast.walk(owner) if isinstance(node, ast.AnnAssign) and not fixed):
        if names & {one.id for one in ast.walk(node.annotation) if isinstance(one, ast.Name)}:
            if isinstance(node.target, ast.Attribute):
                yield node.target.attr
            elif node in owner.body:
                yield ast.unparse(node.target)


def set_from_outside(wanted: set[str]) -> Iterator[tuple[str, str]]:
    """Place and name of each attribute that is set on something other than `self`."""
    candidate = re.compile(rf"^ +[^=#]*\.({'|'.join(wanted)})\b[^=()]* = ", re.MULTILINE)
    for path, text in texts().items():
        if candidate.search(text):
            for target in targets(ast.parse(text)):
                if target.attr in wanted and ast.unparse(target.value) != "self":
                    yield f"{path.relative_to(ROOT)}:{target.lineno}", target.attr


def targets(tree: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            several = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (one for one in several if isinstance(one, ast.Attribute))


def test_no_callable_is_set_from_outside_its_class() -> None:
    found = [f"{place} {name}" for place, name in set_from_outside(callables() - KNOWN)]
    assert found == [], "give it by the constructor, or as an event of one object of events"


def test_the_exceptions_are_needed() -> None:
    assert {name for _, name in set_from_outside(callables() & KNOWN)} == KNOWN
