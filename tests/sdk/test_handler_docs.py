"""The code of the pages on handlers runs, and does what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("handlers", "typed-requests", "streaming", "handler-tests", "torchserve-handlers")
PAGE = "\n".join((DOCS / f"{name}.md").read_text() for name in PAGES)
"""All of them: the tests of one page run the handlers of the others."""
BLOCKS = dict(re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))

EXAMPLES: dict[str, tuple[list[Any], list[tuple[int, bytes]]]] = {
    "shout.py": (["hello"], [(200, b"HELLO!")]),
    "double.py": ([21, "ab"], [(200, b"42"), (200, b"abab")]),
    "typed.py": (
        [{"text": "a", "points": [{"x": 1}, {"x": 2}]}, {"text": 5}],
        [(200, b'{"text":"a","sum":3}'), (400, b"")],
    ),
    "roots.py": (
        [4, "x", 1e301, -1],
        [(200, b"2.0"), (400, b""), (422, b""), (503, b"")],
    ),
    "table.py": (["x"], [(203, b"ann,1\n")]),
    "count.py": ([2, 1], [(200, b"1\n2\n"), (200, b"1\n")]),
    "sender.py": (["world"], [(200, b"Hello there world")]),
    "classifier.py": ([[2, 3, 1]], [(200, b"[\n  3,\n  2,\n  1\n]")]),
    "async_sender.py": (["world"], [(200, b"Hello there world")]),
    "tokens.py": (["to be or"], [(200, b"to be or ")]),
    "ticks.py": (["x"], [(200, b"data: 0\n\ndata: 1\n\ndata: 2\n\n")]),
    "countdown.py": ([2], [(200, b"1\n0\n")]),
    "memory.py": ([2, 3], [(200, b"2"), (200, b"5")]),
    "patient.py": (["x"], [(200, b"thorough")]),
    "measured.py": (["two words"], [(200, b"ok")]),
    "warm.py": ([[4, 5]], [(200, b"9")]),
    "msx_reverse.py": (["abc"], [(200, b"cba")]),
}

CONFIGS: dict[str, dict[str, Any]] = {"countdown.py": {"continuousBatching": True}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, code in BLOCKS.items():
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    import_module("msx_core.safe_yaml")  # libyaml's classes cannot be imported twice
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_every_block_is_run_here() -> None:
    assert PAGE.count("```python\n") + PAGE.count("```toml\n") == len(BLOCKS)
    tests = {name for name in BLOCKS if name.startswith("test_")}
    assert BLOCKS.keys() - tests - {"pyproject.toml", "conftest.py"} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_answers(folder: Path, name: str) -> None:
    inputs, expected = EXAMPLES[name]
    with LocalModel(name, folder, config=CONFIGS.get(name)) as model:
        replies = model.predict(inputs, headers={"x-user": "ann"})
    assert [(reply.status, reply.body) for reply in replies] == expected


def test_the_method_of_the_page(folder: Path) -> None:
    with LocalModel("classifier.py", folder) as model:
        assert [reply.body for reply in model.predict([[2, 3, 1], [4]], method="classify_top")] == [b"3", b"4"]


WITH_FIXTURE = "test_once.py"


def test_the_fixture_of_the_page_loads_once(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--setup-show", WITH_FIXTURE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("SETUP    M model")) == (0, 1), done.stdout
    assert " 2 passed" in done.stdout


@pytest.mark.parametrize("name", [name for name in BLOCKS if name.startswith("test_") and name != WITH_FIXTURE])
def test_the_tests_of_the_page_pass(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(BLOCKS[name], name, "exec"), namespace)
    tests = [value for key, value in namespace.items() if key.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_a_client_that_left_is_seen(folder: Path) -> None:
    gone, hasty = (InferenceRequest(id, {"body": Part(b"")}, deadline=0.0) for id in ("gone", "hasty"))
    gone.cancelled = True
    with LocalModel("patient.py", folder) as model:
        replies = model.predict([gone, hasty])
    assert [reply.body for reply in replies] == [b"", b"quick"]


def test_the_package_registers_its_handler() -> None:
    assert '[project.entry-points."msx.handlers"]\nreverse = "msx_reverse"\n' in BLOCKS["pyproject.toml"]
