"""Runs in an interpreter with vLLM: `python -m tests.vllm.real CALL FOLDER` writes what it finds as JSON."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from msx_sdk.testing import LocalModel
from tests.vllm.cases import CASES, REFUSED, Case, Refusal, Refused, ask

STUB = Path(__file__).parent / "stub"
CONFIG = {
    "vllm": {"enforce-eager": True, "dtype": "float32", "kv-cache-memory-bytes": "64M", "max-num-seqs": 8},
    "maxConcurrent": 8,
}


def names(folder: str) -> list[str]:
    """The names of the stub that vLLM does not have, or has with other parameters."""
    modules = [path.relative_to(STUB).with_suffix("") for path in sorted((STUB / "vllm").rglob("*.py"))]
    dotted = [".".join(path.parts).removesuffix(".__init__") for path in modules]
    return [wrong for name in dotted for wrong in _differences(name)]


def answers(folder: str) -> list[str]:
    """The cases that the handler does not answer as they say."""
    from msx_vllm.handler import VllmHandler

    with LocalModel(VllmHandler, folder, config=CONFIG) as model:
        return [*_wrong(model, CASES), *_unrefused(model, REFUSED)]


def _wrong(model: LocalModel, cases: list[Case]) -> Iterator[str]:
    for case in cases:
        deltas = ask(model, case.request, case.params)
        if isinstance(deltas, Refusal) or not case.holds(deltas):
            yield f"{case.name}: {deltas}"


def _unrefused(model: LocalModel, cases: list[Refused]) -> Iterator[str]:
    for case in cases:
        found = ask(model, case.request, case.params)
        if not isinstance(found, Refusal) or not re.match(case.message, found.message):
            yield f"{case.name}: {found}"


def _differences(name: str) -> Iterator[str]:
    real, stub = importlib.import_module(name), _stub(name)
    for public, made in vars(stub).items():
        if public.startswith("_") or getattr(made, "__module__", name) != name or public.isupper():
            continue
        if public in ("human", "scores", "outputs_of", "Renderer"):  # the stub's own
            continue
        theirs = getattr(real, public, None)
        if theirs is None:
            yield f"{name}.{public}"
        elif inspect.isfunction(made):
            yield from _unknown(f"{name}.{public}", made, theirs)
        elif inspect.isclass(made) and inspect.isclass(theirs):
            yield from _of_class(f"{name}.{public}", made, theirs)


def _of_class(name: str, made: type, real: type) -> Iterator[str]:
    for method, function in vars(made).items():
        if inspect.isfunction(function) and not method.startswith("_") and hasattr(real, method):
            yield from _unknown(f"{name}.{method}", function, getattr(real, method))
    known = {*getattr(real, "__dataclass_fields__", ()), *getattr(real, "__struct_fields__", ()), *dir(real)}
    yield from (f"{name}.{field}" for field in getattr(made, "__annotations__", ()) if field not in known | {"made"})


def _unknown(name: str, made: Callable[..., object], real: Callable[..., object]) -> Iterator[str]:
    """Parameters that the real one does not have."""
    theirs = inspect.signature(real).parameters
    yield from (f"{name}({parameter})" for parameter in inspect.signature(made).parameters if parameter not in theirs)


def _stub(name: str) -> ModuleType:
    path = STUB / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    call, folder, result = sys.argv[1:]
    os.chdir(Path(result).parent)
    Path(result).write_text(json.dumps({"names": names, "answers": answers}[call](folder)))
