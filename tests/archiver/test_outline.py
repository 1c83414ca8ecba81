"""Outlines of handlers: what their sources tell of overlap, without importing them."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest

from msx_archiver.outline import Outlines, Source, SourceUnknownError, has_own_reason
from msx_core.config.keys import ModelKeys
from msx_core.overlap import sequential_reason
from msx_core.resolve import resolve_object

SOURCES = {
    "base": """
from msx_core.steps import three_steps
import abc
class Base(abc.ABC):
    overlap = True
    @three_steps("HandlerTime", ("preprocess", "inference", "postprocess"), ("_is_explain",))
    def handle(self, data, context): return [lambda: (yield)]
    def _is_explain(self): ...
    def initialize(self, context): ...
    def preprocess(self, data): ...
class Reasons(Base):
    def sequential_reason(self): ...
""",
    "package": "from .inside import Inner as Outer\nfrom . import inside\n",
    "package.inside": "from ..base import Base\nclass Inner(Base): pass\n",
    "loop": "from loop import A\nclass A(B): handle = None\nclass B(A): ...\n",
}
UNSAID = "neither model-config.yaml nor the class {} says overlap"


def read(name: str, **sources: str) -> Source | None:
    text = {**SOURCES, **sources}.get(name)
    package = name if name == "package" else name.rpartition(".")[0]
    return None if text is None else Source(ast.parse(text), package)


def reason_of(text: str, **keys: Any) -> str:
    module = Outlines(lambda name: read(name, h=text)).module("h")
    return sequential_reason(resolve_object(module), ModelKeys(**keys))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from base import Base\nclass H(Base): labels = ()", ""),
        ("import base\nclass H(base.Base): pass", ""),
        ("import base as b\nfrom typing import Generic, T\nclass H(b.Base, Generic[T]): pass", ""),
        ("import package\nclass H(package.Outer): pass", ""),
        ("from package import inside\nclass H(inside.Inner): pass", ""),
        ("from nowhere import Net\nfrom base import Base\nclass N(Net): pass\nclass H(Base): pass", ""),
        (
            "from base import Base\nclass H(Base):\n    def inference(self, x): ...",
            "H overrides inference(), which may keep a request on self",
        ),
        ("from base import Base\nclass H(Base):\n    overlap: bool = True\n    def inference(self, x): ...", ""),
        ("from base import Base\nclass H(Base):\n    overlap = False", UNSAID.format("H")),
        (
            "from base import Base\nclass H(Base):\n    overlap = True\n    def _is_explain(self): ...",
            "H overrides _is_explain(), which its handle() calls",
        ),
        (
            "from base import Base\nclass H(Base):\n    async def handle(self, data, context): ...",
            "its handle() returns a list, once awaited",
        ),
        (
            "from base import Base\nclass H(Base):\n    def handle(self, data, context):\n        yield from data",
            "its handle() returns lists, one after the other",
        ),
        (
            "def handle(data, context): return data",
            "its handle() is not that of a base class with preprocess, inference and postprocess",
        ),
    ],
)
def test_why_batches_run_one_after_the_other(text: str, reason: str) -> None:
    assert reason_of(text) == reason


def test_the_yaml_says_it_for_a_class() -> None:
    text = "from base import Base\nclass H(Base):\n    overlap = None\n    def inference(self, x): ..."
    assert (reason_of(text), reason_of(text, overlap=True)) == (UNSAID.format("H"), "")


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("from nowhere import Base\nclass H(Base): pass", "the source of nowhere is not here"),
        ("from base import Nothing\nclass H(Nothing): pass", "Nothing of base is nothing that its source defines"),
        ("import base\nclass H(base.make()): pass", "h computes a base class"),
        ("from base import Base\nclass H(Base):\n    overlap = bool(1)", "H computes overlap"),
        ("from base import Base\nclass H(Base):\n    handle = Base.handle", "H assigns handle"),
        (
            "from msx_core.steps import three_steps\nclass H:\n    @three_steps(NAME)\n    def handle(self): ...",
            "the arguments of three_steps() are computed",
        ),
        ("import base\nclass H(base): pass", "the bases of H are no classes that go together"),
        ("class H(H): handle = 1", "H of h is made of itself"),
        ("from loop import A\nclass H(A): pass", "A of loop is made of itself"),
    ],
)
def test_what_the_sources_do_not_tell(text: str, unknown: str) -> None:
    with pytest.raises(SourceUnknownError) as raised:
        reason_of(text)
    assert str(raised.value).startswith(unknown)


def test_a_handler_that_may_find_a_reason_of_its_own() -> None:
    outlines = Outlines(lambda name: read(name, h="from base import Reasons\nclass H(Reasons): pass"))
    assert has_own_reason(resolve_object(outlines.module("h")).owner)
    assert not has_own_reason(resolve_object(outlines.module("base").Base).owner)


def test_nothing_is_imported() -> None:
    reason_of("import hostile\nfrom base import Base\nraise SystemExit\nclass H(Base): pass")
    assert {"base", "hostile"}.isdisjoint(sys.modules)
