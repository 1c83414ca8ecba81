from __future__ import annotations

import gc
import inspect
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from msx_core.batch import current_request_ids
from tests.forked import ForkingPopen
from tests.loops import WATCHDOG

timeless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Without limits of time, which a busy machine exceeds."""
settings.register_profile("usual", timeless, derandomize=True)
"""The same cases each time: whether a change passes is not left to chance."""
settings.register_profile("long", timeless, max_examples=2_000)
"""For scripts/test-all, which draws others each time."""
settings.load_profile("usual")


usual: httpx.Timeout = inspect.signature(httpx.get).parameters["timeout"].default
usual.connect = usual.read = usual.write = usual.pool = WATCHDOG
"""Where a test gives a client of httpx no time: its 5 s are less than a busy machine may need for a first request."""

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell without a terminal starts what is behind `&` so, and every process of a test would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """An editable installation keeps the entry points of the day on which it was made."""
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    groups = set(re.findall(r'^\[project\.entry-points\."(.*)"\]$', project, re.MULTILINE))
    if missing := groups - {point.group for point in distribution("msx-serve").entry_points}:
        pytest.exit(
            f"msx-serve is installed without the entry points {', '.join(sorted(missing))} of pyproject.toml: run "
            "`python -m pip install --no-deps --no-build-isolation --editable .`, or any of the scripts",
            returncode=4,
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of which the given markers leave nothing: it takes seconds where they import MindSpore."""
    expression = config.option.markexpr
    if not expression or not (collection_path.is_dir() or collection_path.suffix == ".py"):
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return all(_leaves_nothing(expression, file) for file in files) or None


@cache
def _leaves_nothing(expression: str, file: Path) -> bool:
    text = file.read_text()
    if expression.startswith("mindspore") and "mark.mindspore" not in text:
        return True
    return any(f"not {name}" in expression and _is_mark_of_all(name, text) for name in ("mindspore", "long"))


def _is_mark_of_all(name: str, text: str) -> bool:
    return re.search(rf"^pytestmark = [^\n]*(?:\n +[^\n]*)*\bmark\.{name}\b", text, re.MULTILINE) is not None


@pytest.fixture
def forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the workers and programs of ours that are started in this process (tests/forked.py)."""
    monkeypatch.setattr(subprocess, "Popen", ForkingPopen)


@pytest.fixture(autouse=True)
def no_request_of_another_test() -> Generator[None]:
    """A context that was given a batch, and no end, would go on naming its requests in logs and metrics."""
    yield
    current_request_ids.set("")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """MindSpore's CPU collectives fail now and then. No other test is run again: its cause is to be found."""
    for item in items:
        if item.get_closest_marker("collectives"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process. Each look at them takes 0.3 s, and MindSpore has the garbage
    collected for every graph that it compiles."""
    if mindspore := sys.modules.get("mindspore"):
        mindspore.runtime.launch_blocking()  # as the worker does; behind a first operator it has no effect
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports travel between processes as UTF-8, and some tests log what has no UTF-8 on purpose."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report
