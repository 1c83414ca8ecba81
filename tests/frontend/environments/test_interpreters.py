"""Models choose among the interpreters of the server by name, and each is checked once until something changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.environments.interpreter import own
from msx_frontend.environments.interpreters import Interpreters
from msx_frontend.management_errors import InvalidModel
from tests.interpreters import new_interpreter, runs, stub_interpreter
from tests.loops import run


def named(**paths: Path) -> Interpreters:
    return Interpreters(ServerConfig(pythons=tuple(f"{name}={path}" for name, path in paths.items())), os.environ)


def test_a_model_that_names_none_has_the_servers_own_which_is_not_described() -> None:
    chosen = named().of("m", None)
    assert run(chosen.check("m")) == own()
    assert (chosen.path, chosen.describe()) == (own().path, {})


def test_a_name_that_is_not_listed_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as caught:
        named(a=tmp_path / "a", b=tmp_path / "b").of("m", "vllm")
    assert caught.value.message == (
        "m: python: vllm is not an interpreter of this server's key pythons, which has a, b: add "
        "vllm=/path/to/bin/python there, and start the server again"
    )
    with pytest.raises(InvalidModel, match="key pythons, which is not set: add"):
        named().of("m", "vllm")


def test_it_is_checked_once_for_all_that_come_at_once_and_described_then(tmp_path: Path) -> None:
    async def test() -> None:
        chosen = named(other=stub_interpreter(tmp_path / "python")).of("m", "other")
        assert chosen.describe() == {}
        found = await asyncio.gather(*(chosen.check(f"m{at}") for at in range(3)))
        assert runs(tmp_path / "python") == 1
        described = chosen.describe()
        assert list(described) == ["name", "path", "python", "packages"]
        assert (described["name"], described["packages"]["torch"]) == ("other", "2.13.0")
        assert found[0] is await chosen.check("m")

    run(test())


def test_it_is_checked_again_when_it_or_its_packages_have_changed(tmp_path: Path) -> None:
    async def test() -> None:
        path, site, msx = tmp_path / "python", tmp_path / "site", tmp_path / "msx.py"
        site.mkdir()
        msx.touch()
        chosen = named(other=stub_interpreter(path, site_dirs=[str(site)], file=str(msx))).of("m", "other")
        await chosen.check("m")
        (site / "torch").mkdir()
        await chosen.check("m")
        assert runs(path) == 2, "a package was installed"
        msx.write_text("# another version")
        await chosen.check("m")
        assert runs(path) == 3, "MSX was changed in place"
        stub_interpreter(path, "echo broken")
        with pytest.raises(InvalidModel, match=r"^m: python: other \(.*/python\) is not Python: it wrote 'broken'"):
            await chosen.check("m")
        assert chosen.describe() == {}
        path.unlink()
        with pytest.raises(InvalidModel, match="cannot be run: No such file or directory"):
            await chosen.check("m")
        stub_interpreter(path)
        assert (await chosen.check("m")).path == str(path), "a failure is not remembered"

    run(test())


def test_the_one_of_the_key_python_is_the_default_and_checked_again_too(tmp_path: Path) -> None:
    async def test() -> None:
        path = stub_interpreter(tmp_path / "python")
        chosen = Interpreters(ServerConfig(python=path), os.environ).of("m", None)
        await chosen.check("m")
        assert "name" not in chosen.describe()
        path.unlink()
        with pytest.raises(InvalidModel, match=r"^m: python: /.*/python cannot be run"):
            await chosen.check("m")

    run(test())


def test_it_is_checked_with_the_rights_of_workers(tmp_path: Path) -> None:
    config = ServerConfig(pythons=(f"other={stub_interpreter(tmp_path / 'python')}",))
    interpreters = Interpreters(config, os.environ, confine=lambda command: ["sh", "-c", "echo $0 of user 7; exit 1"])
    with pytest.raises(InvalidModel, match="ended with an error when it was checked: sh of user 7"):
        run(interpreters.of("m", "other").check("m"))


def test_a_real_one(tmp_path: Path) -> None:
    path = new_interpreter(tmp_path / "other")
    assert run(named(other=path).of("m", "other").check("m")).path == str(path)
