"""`msx-serve doctor` reads what a start reads: it says beforehand what the start would end with, or warn of."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from msx_core.start_errors import StartError
from msx_frontend.cli.doctor.inputs import check_inputs
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.config import NamedSnapshot, ServerConfig
from msx_frontend.findings import Finding, Level
from msx_net.listening.address import Address
from tests.certificates import Certificate, write_pem
from tests.frontend.assembly.in_process import config_of, started
from tests.frontend.packing import pack_model
from tests.loops import run
from tests.plugins import install_module

HTTPS = Address("https", "127.0.0.1", 0)
Made = Callable[[Path], dict[str, Any]]


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.chdir(tmp_path)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


BROKEN: dict[str, tuple[str, Made]] = {
    "KeysFileError": ("keys", lambda at: {"api_keys_file": at / "no.yaml", "disable_token_authorization": False}),
    "KeyVariableError": ("keys", lambda at: {"disable_token_authorization": False}),
    "ServerConfigError": ("keys", lambda at: {}),
    "TlsError": ("TLS", lambda at: {"inference_address": HTTPS}),
    "ClientCaError": ("TLS", lambda at: {"client_ca": at / "ca.pem"}),
    "MetricsConfigError": ("metrics", lambda at: {"metrics_config": written(at / "metrics.yaml", "- a")}),
    "PluginError": ("plugins", lambda at: {"plugins_path": (at / "none",)}),
    "SnapshotError": ("snapshot", lambda at: {"model_snapshot": NamedSnapshot("none")}),
    "StateStoreError": (
        "state",
        lambda at: {"state_dir": written(at / "s" / "state.db", "not SQLite, but text").parent},
    ),
    "StoreError": (
        "store",
        lambda at: {"state_dir": written(at / "s" / "store.db", "not SQLite, but text").parent, "jobs": True},
    ),
    "CallbackSecretsError": (
        "callbacks",
        lambda at: {"jobs": True, "callback_hosts": ("*",), "callback_secrets": at / "no-secrets"},
    ),
    "PythonError": ("workers", lambda at: {"python": at / "no-python"}),
    "KeyRingError": ("signatures", lambda at: {"require_signature": True}),
    "StartError": ("traces", lambda at: {"otlp_endpoint": "nowhere"}),
    "StartupError": ("models", lambda at: {"load_models": ("no.mar",)}),
    "ServablesError": ("models", lambda at: {"servables": (at,)}),
    "HuggingFaceError": ("models", lambda at: {"huggingface": ("a=/x", "a=/y")}),
}
"""By the class of the error: the check that finds it, and the settings that bring it about."""
VARIABLES = {"KeyVariableError": "a b", "ServerConfigError": "k" * 40}
"""MSX_API_KEY."""
FOUND_BY_OTHERS = {
    "AcceleratorError": "the devices",
    "GuessError": "of `msx-serve PATH`, which has no doctor",
    "GrpcListenError": "the ports",
    "InstanceError": "a server that runs there",
    "KeyFileTaken": "a server that runs there",
    "ListenError": "the ports",
    "LogConfigError": "below: the log is set up before the start",
    "NoDevicesError": "the devices",
    "StateFolderError": "the disk",
    "SupervisorError": "the configuration; others are of a frontend below a supervisor, which a doctor is not",
    "TokenFileError": "the disk",
    "UnknownAcceleratorError": "the devices",
}


def broken(name: str, folder: Path) -> tuple[str, ServerConfig, Mapping[str, str]]:
    check, made = BROKEN[name]
    env = {"MSX_API_KEY": VARIABLES[name]} if name in VARIABLES else {}
    return check, config_of(folder, **made(folder)), {**os.environ, **env}


def of_check(findings: Iterator[Finding], check: str) -> list[Finding]:
    return [one for one in findings if one.check == check]


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_start_ends_with_is_a_failure(name: str, tmp_path: Path) -> None:
    check, config, env = broken(name, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (found,) = of_check(check_inputs(Machine(config, env)), check)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert found.level is Level.FAILED
    os.environ.update(env)

    async def test() -> str:
        async with AsyncExitStack() as parts:
            with pytest.raises(StartError) as raised:
                await started(config, parts)
            assert type(raised.value).__name__ == name
            return str(raised.value)

    assert run(test()) == found.found


def kinds(of: type[StartError]) -> set[str]:
    return {of.__name__}.union(*(kinds(below) for below in of.__subclasses__()))


def test_each_error_of_a_start_is_looked_for() -> None:
    assert kinds(StartError) - BROKEN.keys() - FOUND_BY_OTHERS.keys() == set()


@pytest.mark.parametrize("text", ["", "- a", "a: [", "\n"])
def test_a_log_configuration_that_cannot_be_used(text: str, tmp_path: Path) -> None:
    config = config_of(tmp_path, log_config=written(tmp_path / "log.yaml", text))
    (found,) = of_check(check_inputs(Machine(config)), "log")
    assert (found.level, str(tmp_path / "log.yaml") in found.found) == (Level.FAILED, True)


@pytest.mark.parametrize(("days", "level"), [(-1, Level.FAILED), (5, Level.WARNING), (90, Level.OK)])
def test_a_certificate_that_has_expired_or_soon_will(
    days: int, level: Level, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, certificate = write_pem(Certificate.make(days=days), tmp_path)
    config = config_of(tmp_path, inference_address=HTTPS, private_key_file=key, certificate_file=certificate)
    (found,) = of_check(check_inputs(Machine(config)), "TLS")
    assert (found.level, "CN=localhost" in found.found) == (level, True)
    assert capsys.readouterr().err == "", "the log is not written"


@pytest.mark.parametrize("group", ["endpoints", "apps", "apis", "launchers", "start_scripts"])
def test_a_plugin_that_cannot_be_loaded_is_named(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    install_module(tmp_path / "plugins", "broken", "import nothing_of_this_name\n", **{group: {"it": "broken:It"}})
    config = config_of(tmp_path, plugins_path=(tmp_path / "plugins",))
    (found,) = of_check(check_inputs(Machine(config)), "plugins")
    assert found.level is Level.FAILED
    assert found.found.startswith("The plugin it (broken:It of broken 1.0) cannot be loaded: ModuleNotFoundError")


def test_an_api_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    install_module(tmp_path / "plugins", "no_api", "API = 1\n", apis={"it": "no_api:API"})
    config = config_of(tmp_path, plugins_path=(tmp_path / "plugins",))
    (found,) = of_check(check_inputs(Machine(config)), "plugins")
    assert (found.level, "is not a msx_frontend.plugins.families.ServedApi" in found.found) == (Level.FAILED, True)


def test_plugins_of_the_server_itself_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    install_module(tmp_path / "plugins", "fine", "def app(scope, receive, send): ...\n", apps={"mine": "fine:app"})
    config = config_of(tmp_path, plugins_path=(tmp_path / "plugins",))
    (found,) = of_check(check_inputs(Machine(config)), "plugins")
    assert (found.level, found.found) == (Level.OK, "mine (fine:app of fine 1.0)")


def test_all_is_well(tmp_path: Path) -> None:
    pack_model(tmp_path, "m")
    keys = written(tmp_path / "keys.yaml", f"keys: [{{name: a, key: {'k' * 40}, kind: inference}}]")
    keys.chmod(0o600)
    config = config_of(tmp_path, load_models=("m.mar",), api_keys_file=keys, disable_token_authorization=False)
    found = {one.check: one for one in check_inputs(Machine(config))}
    assert {one.level for one in found.values()} == {Level.OK}
    assert found["keys"].found == f"1 in {keys}"
    assert found["models"].found == "1 to load"


def test_the_state_of_a_running_server_is_read(tmp_path: Path) -> None:
    config = config_of(tmp_path)

    async def test() -> None:
        async with AsyncExitStack() as parts:
            await started(config, parts)
            (found,) = of_check(check_inputs(Machine(config)), "state")
            assert (found.level, "schema" in found.found) == (Level.OK, True)

    run(test())
