from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from msx_core.resolve import resolve_handler, resolve_object, resolve_packed
from msx_core.resolved_handler import HandleKind, ResolvedHandler
from msx_sdk import Handler, HandlerLoadError
from msx_sdk.context import Context, ModelInfo
from tests.plugins import install_module

FUNCTION = "def handle(data, context): return 'handle'\ndef other(data, context): return 'other'\n"
CLASS = """
class One:
    def initialize(self, context): self.ready = True
    def handle(self, data, context): return 'one'
"""


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def resolved(folder: Path, spec: str, **files: str) -> ResolvedHandler:
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code)
    return resolve_handler(spec, folder)


def answer(handler: ResolvedHandler) -> Any:
    context = Context(ModelInfo("m"))
    handler.initialize(context)
    return handler.handle([], context)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("h.py", "handle"), ("h", "handle"), ("h.py:other", "other"), ("h:other", "other")],
)
def test_functions_of_a_file(tmp_path: Path, spec: str, expected: str) -> None:
    assert answer(resolved(tmp_path, spec, h=FUNCTION)) == expected


@pytest.mark.parametrize("spec", ["h.py", "h", "h:One", "h.py:One"])
def test_classes_of_a_file(tmp_path: Path, spec: str) -> None:
    handler = resolved(tmp_path, spec, h=CLASS)
    assert answer(handler) == "one"
    assert handler.owner.ready


def test_a_function_that_is_not_there_means_the_class(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert answer(resolved(tmp_path, "h.py:handle", h=CLASS)) == "one"
    assert "handler 'h.py:handle': h has no 'handle'; its class One is taken" in caplog.text


def test_a_file_in_a_folder_sees_its_neighbours_and_the_archive(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "near.py").write_text("A = 'near'")
    (tmp_path / "top.py").write_text("B = ' and top'")
    (tmp_path / "code" / "h.py").write_text("import near, top\ndef handle(data, context): return near.A + top.B")
    assert answer(resolve_handler("code/h.py", tmp_path)) == "near and top"


def test_a_dotted_module_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "h.py").write_text(FUNCTION)
    assert answer(resolve_handler("inside.h", tmp_path)) == "handle"


def test_an_importable_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("installed_handler")
    monkeypatch.setattr(module, "handle", lambda data, context: "installed", raising=False)
    monkeypatch.setitem(sys.modules, "installed_handler", module)
    assert answer(resolve_handler("installed_handler", tmp_path)) == "installed"


@pytest.mark.parametrize(("value", "expected"), [("plug", "handle"), ("plug:other", "other"), ("plug:One", "one")])
def test_an_installed_packages_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, expected: str
) -> None:
    install_module(tmp_path, "plug", FUNCTION + CLASS, handlers={"shiny": value})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer(resolve_handler("shiny", tmp_path / "elsewhere")) == expected


def test_the_archive_goes_before_entry_points(tmp_path: Path) -> None:
    assert answer(resolved(tmp_path, "mindir", mindir=FUNCTION)) == "handle"


def test_built_in_handlers_are_entry_points(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"installed: checkpoint, .*image_classifier, .*mindir"):
        resolve_handler("no_such_handler", tmp_path)


def test_a_base_class_of_the_same_file_is_not_a_candidate(tmp_path: Path) -> None:
    code = f"{CLASS}\nclass Two(One):\n    def handle(self, data, context): return 'two'\nAlias = Two\n"
    assert answer(resolved(tmp_path, "h", h=code)) == "two"


def test_classes_imported_from_elsewhere_are_not_candidates(tmp_path: Path) -> None:
    code = "from base import One as Base\nclass Mine(Base):\n    def handle(self, data, context): return 'mine'\n"
    assert answer(resolved(tmp_path, "h", base=CLASS, h=code)) == "mine"


@pytest.mark.parametrize("spec", ["/elsewhere/h.py", "/elsewhere/h", "sub/h.py", "../h.py", "/elsewhere/h.py:handle"])
def test_of_a_path_that_is_not_in_the_archive_the_base_name_counts(tmp_path: Path, spec: str) -> None:
    (tmp_path.parent / "h.py").write_text("def handle(data, context): return 'outside'")
    assert answer(resolved(tmp_path, spec, h="def handle(data, context): return 'inside'")) == "inside"


def test_a_handler_file_outside_of_the_archive_is_none(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def handle(data, context): return 'outside'")
    (tmp_path / "model").mkdir()
    with pytest.raises(HandlerLoadError, match="neither a file of the archive"):
        resolve_handler(str(tmp_path / "other.py"), tmp_path / "model")


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ("h", CLASS + CLASS.replace("One", "Two"), r"classes found: One, Two\. Name one as h:NAME"),
        ("h", "x = 1", "classes found: none"),
        ("h", "from msx_sdk import Handler", "classes found: none"),
        ("h:nothing", FUNCTION, r"'h:nothing': h has no 'nothing'"),
        ("h:nothing", CLASS + CLASS.replace("One", "Two"), r"'h:nothing': h has no 'nothing'"),
        ("h:x", "class x: pass", r"x is not a handler: handle\(data, context\) is missing"),
        ("absent.py", "", "neither a file of the archive"),
        ("no.such.module", "", "neither a file of the archive"),
        ("h/../../x y", "", "neither a file of the archive"),
    ],
)
def test_what_cannot_be_resolved_says_why(tmp_path: Path, spec: str, code: str, message: str) -> None:
    with pytest.raises(HandlerLoadError, match=message):
        resolved(tmp_path, spec, h=code)


def test_an_import_error_inside_the_handler_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="not_installed_here"):
        resolved(tmp_path, "h", h="import not_installed_here")
    assert "h" not in sys.modules


def test_an_import_error_inside_an_importable_module_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "h.py").write_text("import not_installed_here")
    with pytest.raises(ModuleNotFoundError, match="not_installed_here"):
        resolve_handler("pkg.h", tmp_path)


# -- initialising functions --


def test_a_function_is_initialised_by_a_call_without_data(tmp_path: Path) -> None:
    code = """
calls = []
def handle(data, context):
    calls.append(data)
    return data
"""
    handler = resolved(tmp_path, "h", h=code)
    handler.initialize(Context(ModelInfo("m")))
    assert handler.owner.calls == [None]


def test_a_module_may_have_its_own_initialize(tmp_path: Path) -> None:
    code = "state = []\ndef initialize(context): state.append(context.model_name)\n" + FUNCTION
    handler = resolved(tmp_path, "h", h=code)
    handler.initialize(Context(ModelInfo("m")))
    assert handler.owner.state == ["m"]


@pytest.mark.parametrize(
    "body", ["return [row for row in data]", "return [data[0]]", "return [context.get_request_id()]"]
)
def test_a_function_that_goes_straight_at_its_data_loads(tmp_path: Path, body: str) -> None:
    handler = resolved(tmp_path, "h", h=f"def handle(data, context):\n    {body}\n")
    handler.initialize(Context(ModelInfo("m")))


def test_a_function_that_cannot_load_its_model_says_so(tmp_path: Path) -> None:
    handler = resolved(tmp_path, "h", h="def handle(data, context): raise TypeError('weights are of another type')")
    with pytest.raises(TypeError, match="weights"):
        handler.initialize(Context(ModelInfo("m")))


@pytest.mark.parametrize(
    "code",
    [
        "async def handle(data, context): raise RuntimeError",
        "async def handle(data, context): yield RuntimeError",
        "def handle(data, context): yield RuntimeError",
    ],
)
def test_generators_and_coroutines_are_not_called_at_load(tmp_path: Path, code: str) -> None:
    resolved(tmp_path, "h", h=code).initialize(Context(ModelInfo("m")))


# -- objects --


class Plain(Handler):
    def handle(self, data: Any, context: Context) -> Any:
        return "plain"


class Async:
    async def handle(self, data: Any, context: Context) -> Any:
        return "async"


class Callable:
    async def __call__(self, data: Any, context: Context) -> Any:
        return "called"


async def function(data: Any, context: Context) -> Any:
    return "function"


@pytest.mark.parametrize(
    ("target", "is_async"),
    [
        (Plain, False),
        (Plain(), False),
        (Async, True),
        (function, True),
        (functools.partial(function), True),
        (Callable(), True),
        (lambda data, context: [], False),
    ],
)
def test_objects_are_resolved_as_they_are(target: Any, is_async: bool) -> None:
    assert resolve_object(target).is_async is is_async


def test_what_is_not_a_handler() -> None:
    with pytest.raises(HandlerLoadError, match="int is not a handler"):
        resolve_object(5)


def test_parts_that_a_handler_lacks_do_nothing() -> None:
    handler = resolve_object(Async)
    handler.initialize(Context(ModelInfo("m")))
    handler.close()


def test_a_package_is_searched_last(tmp_path: Path) -> None:
    (tmp_path / "brought").mkdir()
    (tmp_path / "brought" / "__init__.py").touch()
    for name in ("inner", "h"):
        (tmp_path / "brought" / f"{name}.py").write_text(CLASS)
    (tmp_path / "h.py").write_text(FUNCTION)
    assert answer(resolve_handler("inner", tmp_path, ["brought"])) == "one"
    assert answer(resolve_handler("h", tmp_path, ["brought"])) == "handle", "the archive's own file comes first"
    with pytest.raises(HandlerLoadError, match="handler 'nowhere' is neither"):
        resolve_handler("nowhere", tmp_path, ["brought"])


PACKAGE = """
import sys
from pathlib import Path
class Package:
    name = "acme_handlers"
    def offer(self): sys.path.append(str(Path(__file__).parent / "offered"))
    def handler_for(self, handler, manifest): return "h" if manifest.get("of") == "acme" else handler
"""


def test_handlers_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_module(tmp_path, "acme_package", PACKAGE, handler_packages={"acme": "acme_package:Package"})
    (tmp_path / "offered" / "acme_handlers").mkdir(parents=True)
    (tmp_path / "offered" / "acme_handlers" / "h.py").write_text(CLASS)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = tmp_path / "model"
    assert answer(resolve_packed("h", model, {})) == "one"
    assert answer(resolve_packed("renamed", model, {"of": "acme"})) == "one"
    assert resolve_packed("base_handler", model, {}).owner.__module__.startswith("ts."), "TorchServe's are there, too"


def test_kinds_of_handlers() -> None:
    def generator(data: Any, context: Any) -> Any:
        yield data

    async def async_generator(data: Any, context: Any) -> Any:
        yield data

    kinds = [resolve_object(target).kind for target in (Plain, Async, generator, async_generator)]
    assert kinds == [HandleKind.PLAIN, HandleKind.COROUTINE, HandleKind.GENERATOR, HandleKind.ASYNC_GENERATOR]


def test_a_file_with_the_name_of_another_module_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert answer(resolved(tmp_path, "this.py", this=FUNCTION)) == "handle"
    assert "this.py has the name of Python's module this, and hides it from all that import that" in caplog.text


def test_one_that_fails_says_so_too_and_puts_the_module_back(tmp_path: Path) -> None:
    import random

    with pytest.raises(HandlerLoadError) as failed:
        resolved(tmp_path, "random.py", random="import random\nrandom.seed(1)")
    assert str(failed.value).startswith("random.py has the name of Python's module random, and hides it from all that")
    assert "importing it failed: AttributeError" in str(failed.value)
    assert sys.modules["random"] is random
