"""Environments are installed once, shared, given up and thrown away; pip itself is met in the conformance suite."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from msx_archiver.uses import Uses
from msx_core.config import ModelConfig
from msx_frontend.config import ServerConfig
from msx_frontend.environments import build as build_module
from msx_frontend.environments.environments import Environment, Environments
from msx_frontend.environments.interpreter import Interpreter, own
from msx_frontend.environments.process import CommandFailed, run_command
from msx_frontend.environments.requirements import Requirements
from msx_frontend.management_errors import InvalidModel, RequirementsFailed
from msx_frontend.models.versions.model_source import ModelSource
from tests.backend.harness import wait_until
from tests.interpreters import stub_interpreter
from tests.loops import run
from tests.processes import is_alive

Pip = Callable[[Path], Awaitable[None]]


class FakePip:
    """Counts what is installed; `act` is what pip does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[Sequence[str]] = []
        self.act: Callable[[Callable[[str], None]], Awaitable[None]] = self._nothing
        monkeypatch.setattr(build_module, "run_command", self._run)

    async def _nothing(self, tell: Callable[[str], None]) -> None:
        return None

    async def _run(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        self.commands.append(command)
        await self.act(tell)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    return FakePip(monkeypatch)


def requirements_of(folder: Path, text: str = "parcel\n", digest: str = "d", venv: bool = False) -> Requirements:
    (folder / "requirements.txt").write_text(text)
    return Requirements(folder / "requirements.txt", folder, digest, venv, own())


def source_of(folder: Path, text: str = "parcel\n", name: str = "m") -> ModelSource:
    (folder / "requirements.txt").write_text(text)
    manifest = {"model": {"requirementsFile": "requirements.txt"}}
    return ModelSource(name, "1.0", "m.mar", "d", folder, "h", manifest, ModelConfig())


def environments_of(folder: Path, **settings: object) -> Environments:
    config = ServerConfig(install_py_dep_per_model=True, **settings)  # type: ignore[arg-type]
    return Environments(folder / "environments", config, {})


def installed(folder: Path) -> list[Path]:
    root = folder / "environments"
    return sorted(root.iterdir()) if root.is_dir() else []


# The key.


def test_the_same_requirements_have_one_key(tmp_path: Path) -> None:
    first = requirements_of(tmp_path)
    assert first.key() == replace(first, digest="another archive").key()
    other = Interpreter("/usr/bin/other", own().version, ())
    different = [replace(first, venv=True), replace(first, interpreter=other)]
    keys = {first.key(), *(one.key() for one in different), requirements_of(tmp_path, "parcel==2\n").key()}
    assert len(keys) == 4


@pytest.mark.parametrize("line", ["-r more.txt", " --constraint=c.txt", "./x.whl", "file:x.whl", "-e .", "-c c.txt"])
def test_requirements_that_lead_to_the_archives_files_belong_to_it(tmp_path: Path, line: str) -> None:
    first = requirements_of(tmp_path, f"parcel\n{line}\n")
    assert first.key() != replace(first, digest="another archive").key()


# Building.


def test_nothing_is_installed_for_who_requires_nothing(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        source = replace(source_of(tmp_path), manifest={"model": {}})
        environment = environments_of(tmp_path).of(source)
        await environment.ready()
        assert environment.place == (sys.executable, None)
        assert await environment.key() == ""
        off = Environments(tmp_path, ServerConfig(), {}).of(source_of(tmp_path))
        assert type(off) is Environment

    run(test())
    assert pip.commands == []


def test_packages_are_installed_by_the_interpreter_of_the_model_and_apart_from_others(
    tmp_path: Path, pip: FakePip
) -> None:
    other = stub_interpreter(tmp_path / "python")

    async def test() -> None:
        environments = environments_of(tmp_path, pythons=(f"other={other}",))
        source = source_of(tmp_path)
        usual = environments.of(source)
        chosen = environments.of(replace(source, config=ModelConfig(python="other")))
        await asyncio.gather(usual.ready(), chosen.ready())
        assert (usual.place.python, chosen.place.python) == (sys.executable, str(other))
        assert usual.place.site_dir != chosen.place.site_dir

    run(test())
    assert sorted(command[0] for command in pip.commands) == sorted([sys.executable, str(other)])


def test_a_name_that_its_vllm_does_not_know_is_refused(tmp_path: Path) -> None:
    known = ["max_model_len", "compilation_config"]
    vllm, other = stub_interpreter(tmp_path / "a", vllm_arguments=known), stub_interpreter(tmp_path / "b")

    async def check(python: str, name: str) -> Interpreter:
        environments = environments_of(tmp_path, pythons=(f"vllm={vllm}", f"other={other}"))
        config = ModelConfig(python=python, vllm={name: 5})
        return await environments.of(replace(source_of(tmp_path), config=config)).check()

    for python, name in (("vllm", "max-model-len"), ("vllm", "compilation-config.mode"), ("other", "max_modellen")):
        assert run(check(python, name)).path
    meant = r"^m: vllm\.max_modellen: vLLM's engine has no such argument; did you mean max_model_len\?$"
    with pytest.raises(InvalidModel, match=meant):
        run(check("vllm", "max-modellen"))


def test_an_interpreter_that_breaks_later_is_told_before_a_worker_starts(tmp_path: Path, pip: FakePip) -> None:
    other = stub_interpreter(tmp_path / "python")

    async def test() -> None:
        environments = environments_of(tmp_path, pythons=(f"other={other}",))
        required = replace(source_of(tmp_path), config=ModelConfig(python="other"))
        both = [environments.of(one) for one in (required, replace(required, manifest={"model": {}}))]
        for environment in both:
            await environment.ready()
        other.unlink()
        for environment in both:
            with pytest.raises(InvalidModel, match=r"^m: python: other \(.*/python\) cannot be run: No such file"):
                await environment.ready()

    run(test())


def test_two_versions_share_one_and_the_last_takes_it_away(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        environments = environments_of(tmp_path)
        one, two = environments.of(source_of(tmp_path)), environments.of(source_of(tmp_path))
        await asyncio.gather(one.ready(), one.ready(), two.ready())
        assert one.place == two.place == (sys.executable, str(installed(tmp_path)[0] / "site"))
        await one.close()
        await environments.forget(one)
        assert len(installed(tmp_path)) == 1
        await two.close()
        assert len(installed(tmp_path)) == 1, "the server may only be ending"
        await environments.forget(two)
        assert installed(tmp_path) == []

    run(test())
    assert len(pip.commands) == 1


def test_what_is_complete_is_found_again(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        first = environments_of(tmp_path).of(source_of(tmp_path))
        await first.ready()
        environments = environments_of(tmp_path)
        again, unused = environments.of(source_of(tmp_path)), tmp_path / "environments" / "x-1"
        unused.mkdir()
        await environments.clean([again])
        assert not unused.exists()
        await again.ready()
        assert again.place == first.place

    run(test())
    assert len(pip.commands) == 1


def test_nothing_is_removed_while_the_interpreter_of_a_model_is_away(tmp_path: Path, pip: FakePip) -> None:
    path = tmp_path / "python"

    async def test() -> None:
        environments = environments_of(tmp_path, pythons=(f"other={path}",))
        source = source_of(tmp_path)
        chosen = environments.of(replace(source, config=ModelConfig(python="other")))
        usual = environments.of(replace(source, manifest={"model": {}}))
        unused = tmp_path / "environments" / "x-1"
        unused.mkdir(parents=True)
        await environments.clean([chosen, usual])
        assert unused.exists()
        stub_interpreter(path)
        await environments.clean([chosen, usual])
        assert not unused.exists()

    run(test())


def test_what_was_removed_is_installed_again(tmp_path: Path, pip: FakePip, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        environment = environments_of(tmp_path).of(source_of(tmp_path))
        await environment.ready()
        await environment.ready()
        assert len(pip.commands) == 1
        site = Path(str(environment.place.site_dir))
        site.rmdir()
        await environment.ready()
        assert environment.place.stands()
        assert environment.place.site_dir != str(site)
        assert caplog.messages == ["m: its installed requirements were removed from the disk, and are installed again"]

    run(test())
    assert len(pip.commands) == 2


def test_a_failed_attempt_is_made_again(tmp_path: Path, pip: FakePip) -> None:
    async def fail(tell: Callable[[str], None]) -> None:
        raise CommandFailed(1, ["Collecting parcel", "ERROR: no parcel", "hint"])

    async def test() -> None:
        environment = environments_of(tmp_path).of(source_of(tmp_path))
        good, pip.act = pip.act, fail
        with pytest.raises(RequirementsFailed) as caught:
            await environment.ready()
        assert caught.value.message == "Custom pip package installation failed for model m: ERROR: no parcel"
        assert caught.value.output == "Collecting parcel\nERROR: no parcel\nhint"
        assert environment.failure is caught.value
        assert installed(tmp_path) == []
        pip.act = good
        await environment.ready()
        assert environment.failure is None

    run(test())


def test_the_last_who_gives_up_ends_the_work(tmp_path: Path, pip: FakePip) -> None:
    ended = asyncio.Event()

    async def hang(tell: Callable[[str], None]) -> None:
        tell("Collecting parcel")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def test() -> None:
        pip.act = hang
        environments = environments_of(tmp_path)
        one, two = environments.of(source_of(tmp_path)), environments.of(source_of(tmp_path))
        waiting = [asyncio.ensure_future(environment.ready()) for environment in (one, two)]
        while {one.phase, two.phase} != {"installing requirements: Collecting parcel"}:
            await asyncio.sleep(0)
        one.give_up()
        with pytest.raises(RequirementsFailed, match="the model was unregistered meanwhile"):
            await waiting[0]
        await one.close()
        assert not ended.is_set()
        waiting[1].cancel()
        await asyncio.wait({waiting[1]})
        assert not ended.is_set(), "a worker that stops waiting is not the version"
        await two.close()
        assert ended.is_set()
        assert installed(tmp_path) == []

    run(test())


def test_a_file_that_is_not_there(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        source = source_of(tmp_path)
        (tmp_path / "requirements.txt").unlink()
        with pytest.raises(RequirementsFailed, match=r"requirements\.txt cannot be read"):
            await environments_of(tmp_path).of(source).ready()

    run(test())


# The process.


def test_lines_come_as_they_are_written(tmp_path: Path) -> None:
    told: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); print(); sys.exit(3)"
    with pytest.raises(CommandFailed) as caught:
        run(run_command([sys.executable, "-u", "-c", code], tmp_path, os.environ, told.append))
    assert told == caught.value.lines == ["one", "two"]
    assert caught.value.code == 3


def test_a_cancelled_command_takes_its_children_along(tmp_path: Path) -> None:
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']); print(p.pid, flush=True); p.wait()"  # noqa: E501

    async def test() -> int:
        told: asyncio.Queue[str] = asyncio.Queue()
        command = [sys.executable, "-c", code]
        task = asyncio.ensure_future(run_command(command, tmp_path, os.environ, told.put_nowait))
        child = int(await told.get())
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return child

    child = run(test())
    wait_until(lambda: not is_alive(child))


# With other servers on one folder (`cache_dir`): each has its own locks.


def server_of(folder: Path) -> Environments:
    config = ServerConfig(install_py_dep_per_model=True)
    (folder / "environments").mkdir(exist_ok=True)
    return Environments(folder / "environments", config, {}, uses=Uses(folder / "users.lock"))


def test_one_server_installs_and_the_other_waits_for_it(
    tmp_path: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "_LOOK_AGAIN", 0.001)
    going, go = asyncio.Event(), asyncio.Event()

    async def slow(tell: Callable[[str], None]) -> None:
        going.set()
        await go.wait()

    async def test() -> None:
        pip.act = slow
        one, two = (server_of(tmp_path).of(source_of(tmp_path)) for _ in range(2))
        first = asyncio.ensure_future(one.ready())
        await going.wait()
        second = asyncio.ensure_future(two.ready())
        while two.phase != "installing requirements: another server installs them":
            await asyncio.sleep(0.001)
        await server_of(tmp_path).recover()
        assert len(installed(tmp_path)) == 1, "a start does not take what another server is making"
        go.set()
        await asyncio.gather(first, second)
        assert one.place == two.place
        for environment in (one, two):
            await environment.close()

    run(test())
    assert len(pip.commands) == 1


def test_what_another_server_uses_stays(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        servers = [server_of(tmp_path) for _ in range(2)]
        one, two = (server.of(source_of(tmp_path)) for server in servers)
        for environment in (one, two):
            await environment.ready()
        await one.close()
        await servers[0].forget(one)
        await server_of(tmp_path).clean([])
        assert two.place.stands()
        await two.close()
        await servers[1].forget(two)
        assert installed(tmp_path) == []

    run(test())


def test_those_of_a_read_only_folder_are_used_and_others_are_installed_elsewhere(tmp_path: Path, pip: FakePip) -> None:
    async def test() -> None:
        shared = environments_of(tmp_path).of(source_of(tmp_path))
        await shared.ready()
        folder, other = tmp_path / "own", tmp_path / "other"
        other.mkdir()
        own_ones = Environments(
            folder, ServerConfig(install_py_dep_per_model=True), {}, ready=tmp_path / "environments"
        )
        found, new = own_ones.of(source_of(tmp_path)), own_ones.of(source_of(other, "other\n"))
        await found.ready()
        assert found.place == shared.place
        await own_ones.clean([])
        assert found.place.stands()
        await new.ready()
        assert new.place.site_dir is not None
        assert Path(new.place.site_dir).is_relative_to(folder)
        for environment in (found, new, shared):
            await environment.close()

    run(test())
