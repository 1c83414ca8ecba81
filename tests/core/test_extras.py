"""Errors about packages that are not installed name the line that installs them."""

from __future__ import annotations

import re
import sys
from importlib.metadata import requires

import pytest

from msx_core.extras import EXTRAS
from msx_core.failures import RequestFailure, summary

MODULES = {"pillow": "PIL"}


def missing(name: str, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """Where it is not installed."""
    monkeypatch.setattr(sys, "path", [])
    for module in [loaded for loaded in sys.modules if loaded.partition(".")[0] == name.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ModuleNotFoundError) as caught:
        __import__(name)
    return caught.value


@pytest.mark.parametrize(("module", "extra"), [("numpy", "mindspore"), ("PIL.Image", "mindspore"), ("torch", "torch")])
def test_the_line_to_install(module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error, name = missing(module, monkeypatch), module.partition(".")[0]
    line = f"No module named '{name}'; it comes with the extra: pip install \"msx-serve[{extra}]\""
    assert summary(error) == f"ModuleNotFoundError: {line}"
    assert RequestFailure.of(error).message.endswith(line)


def test_what_no_extra_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    said = summary(missing("not_installed_here", monkeypatch))
    assert said == "ModuleNotFoundError: No module named 'not_installed_here'"


def test_every_package_of_the_extras_is_known() -> None:
    packages = {match["extra"]: set[str]() for line in requires("msx-serve") or [] if (match := _of_extra(line))}
    for line in requires("msx-serve") or []:
        if match := _of_extra(line):
            packages[match["extra"]].add(MODULES.get(match["name"], match["name"]))
    assert packages["mindspore"] == set(EXTRAS["mindspore"])
    assert packages["torch"] <= {module for modules in EXTRAS.values() for module in modules}


def _of_extra(line: str) -> re.Match[str] | None:
    return re.match(r"(?P<name>[\w-]+).*extra == ['\"](?P<extra>\w+)['\"]", line)
