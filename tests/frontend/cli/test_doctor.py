"""`msx-serve doctor`: each check where all is well and where it is not, and what the command prints and returns."""

from __future__ import annotations

import os
import platform
import re
import resource
import socket
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from msx_frontend.assembly.left_behind import LeftBehind
from msx_frontend.cli.doctor import configuration, devices, left, software, system
from msx_frontend.cli.doctor.configuration import check_supervisor
from msx_frontend.cli.doctor.left import check_left
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.cli.main import main
from msx_frontend.config.load import GivenSettings
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.devices import cann
from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.devices.ascend import Ascend
from msx_frontend.environments.interpreter import own
from msx_frontend.findings import Finding, Level, failed
from msx_frontend.versions import PACKAGES, PYTHON, Range, minor, numbers
from msx_net.listening.address import Address
from tests.frontend.assembly.test_instance import info
from tests.frontend.devices.fake_accelerator import VISIBLE, FakeAccelerator, add_accelerator
from tests.frontend.devices.test_ascend import env as env
from tests.frontend.devices.test_ascend import install_sample
from tests.frontend.packing import pack_model
from tests.interpreters import runs, stub_interpreter
from tests.other_user import UID, needs_root

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of servers of this user."""
    own = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("XDG_STATE_HOME", str(own))
    monkeypatch.setenv("TEMP", str(own))
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    monkeypatch.setattr(cann, "VENDOR", own)
    monkeypatch.chdir(own)


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


# -- versions --


def test_the_versions_are_those_of_pyproject() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = "{PYTHON}"' in text
    for package, wanted in PACKAGES.items():
        assert re.search(rf'"{package}(\[\w+\])?{re.escape(str(wanted))}"', text), package


@pytest.mark.parametrize(
    ("version", "has"), [("2.9.9", False), ("2.10", True), ("2.10.0rc1", True), ("2.11.0", False), ("", False)]
)
def test_a_range_has_a_version(version: str, has: bool) -> None:
    assert Range("2.10", "2.11").has(version) is has


def test_numbers_of_versions_of_cann() -> None:
    assert (numbers("8.3.RC1"), minor("8.5.0.alpha001"), minor("")) == ((8, 3), "8.5", "")


# -- Python and packages --


@dataclass(frozen=True)
class Installed(Machine):
    """With these packages."""

    versions: Mapping[str, str] = field(default_factory=dict)

    def package(self, name: str) -> str | None:
        return self.versions.get(name)


def test_mindspore_that_is_missing_or_other() -> None:
    assert only(software.check_mindspore(Installed())).remedy.startswith('Run `pip install "msx-serve[mindspore]"')
    machine = Installed(versions={"mindspore": "2.7.1", "numpy": "2.1.0"})
    assert [(one.level, one.found.split(",")[0]) for one in software.check_mindspore(machine)] == [
        (Level.WARNING, "2.7.1"),
        (Level.WARNING, "2.1.0"),
    ]


def test_other_interpreters_are_shown_with_what_they_have(tmp_path: Path) -> None:
    there, gone = stub_interpreter(tmp_path / "python", site_dirs=["/there"]), tmp_path / "gone"
    machine = Machine(ServerConfig(pythons=(f"there={there}", f"gone={gone}")))
    found = [(one.level, one.found) for one in software.check_interpreters(machine)]
    version = platform.python_version()
    assert found == [
        (Level.OK, f"there: Python {version}, msx-serve 0.2, torch 2.13.0, {there}"),
        (Level.FAILED, f"gone: {gone} cannot be run: No such file or directory"),
    ]
    assert Path("/there") in machine.worker_packages()
    assert runs(there) == 1


@needs_root
def test_other_interpreters_are_checked_with_the_rights_of_workers(tmp_path: Path) -> None:
    python = stub_interpreter(tmp_path / "python")
    tmp_path.chmod(0o700)
    machine = Machine(ServerConfig(pythons=(f"other={python}",), worker_user=str(UID), state_dir=tmp_path))
    found = only(software.check_interpreters(machine)).found
    assert found.startswith(f"other: {python} ended with an error when it was checked: ")
    assert found.endswith(f"{python} cannot be run as user {UID}: Permission denied")


def test_ray_is_needed_with_a_cluster_only() -> None:
    assert only(software.check_ray(Installed())).level is Level.OK
    with_cluster = Installed(ServerConfig(cluster_address="auto"))
    assert only(software.check_ray(with_cluster)).found == "not installed, and cluster_address is auto"


def test_a_cluster_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        machine = Installed(ServerConfig(cluster_address=address), versions={"ray": "2.55.0"})
        assert only(software.check_ray(machine)).level is Level.OK
    gone = only(software.check_ray(machine))
    assert (gone.level, gone.found) == (Level.FAILED, f"nothing answers at {address}: Connection refused")


# -- NPUs --


def installed(folder: Path, cann: str, driver: str) -> None:
    for file, version in (("ascend-toolkit/latest/compiler", cann), ("driver", driver)):
        (folder / file).mkdir(parents=True)
        (folder / file / "version.info").write_text(f"Name=x\nVersion={version}\n")


def levels(machine: Machine) -> dict[str, tuple[Level, str]]:
    return {one.check: (one.level, one.remedy) for one in devices.check_devices(machine)}


def test_a_machine_without_npus_needs_no_cann(tmp_path: Path, env: dict[str, str]) -> None:
    assert levels(Machine(ServerConfig(), env)) == {"NPUs": (Level.OK, ""), "GPUs": (Level.OK, "")}


def test_a_machine_with_npus(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910c")
    installed(cann.VENDOR, "8.5.0", "25.5.0")
    env[cann.HOME] = str(cann.VENDOR / "ascend-toolkit" / "latest")
    found = levels(Machine(ServerConfig(), env))
    assert (found["CANN"], found["driver"]) == ((Level.OK, ""), (Level.OK, ""))


def test_npus_without_cann_and_driver(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910c")
    found = levels(Machine(ServerConfig(), env))
    assert found["CANN"][0] is Level.FAILED
    assert found["CANN"][1].startswith("Install CANN 8.2 or 8.3 or ")
    assert found["driver"][0] is Level.WARNING


def test_cann_whose_variables_are_not_set(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910c")
    installed(cann.VENDOR, "8.5.0", "25.5.0")
    level, remedy = levels(Machine(ServerConfig(), env))["CANN"]
    assert (level, remedy) == (
        Level.FAILED,
        f"Run `source {cann.VENDOR / 'ascend-toolkit' / 'set_env.sh'}` before the server starts.",
    )


def test_cann_and_driver_that_are_too_old(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910c")
    installed(cann.VENDOR, "8.2.RC1", "24.1.rc3")
    env[cann.HOME] = str(cann.VENDOR / "ascend-toolkit" / "latest")
    machine = Machine(ServerConfig(), env)
    assert cann.DRIVERS["8.2"] in levels(machine)["driver"][1]
    (cann.VENDOR / "ascend-toolkit/latest/compiler/version.info").write_text("Version=7.0.0\n")
    assert levels(machine)["CANN"][0] is Level.FAILED


def test_an_unhealthy_npu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sick = FakeAccelerator(2)
    sick.statuses["f1"] = DeviceStatus(health="Critical", healthy=False)
    add_accelerator(monkeypatch, sick)
    found = {one.found: one.remedy for one in devices.check_devices(Machine()) if one.level is Level.FAILED}
    assert found["FPU f1 is unhealthy: Critical"] == (
        f"`fpu-top` shows it. Until it is repaired, leave it out of {VISIBLE}."
    )
    assert not [one for one in found if "f0" in one]


def found_of_fake(monkeypatch: pytest.MonkeyPatch, env: Mapping[str, str], *statuses: DeviceStatus) -> list[str]:
    fake = FakeAccelerator(len(statuses))
    fake.statuses = {f"f{number}": status for number, status in enumerate(statuses)}
    add_accelerator(monkeypatch, fake)
    return [one.found for one in devices.check_devices(Machine(env=env)) if one.check == "FPUs"]


def test_temperatures_and_memory_errors_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    worn = DeviceStatus(temperature=41, memory_errors={"corrected": 2, "uncorrected": 0})
    told = found_of_fake(monkeypatch, {}, worn, DeviceStatus(memory_errors={"corrected": 0}), DeviceStatus())
    assert told == ["3: Fake 1", "0: 41 °C, ECC errors: 2 corrected; 1: ECC errors: none"]


def test_the_choice_of_a_containers_runtime_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {FakeAccelerator.container: "2"}
    told = found_of_fake(monkeypatch, chosen, DeviceStatus())
    assert told == [f"1: Fake 1; {FakeAccelerator.container}=2, which the container's runtime reads"]


def test_the_choice_of_a_containers_runtime_where_there_are_no_devices(env: dict[str, str]) -> None:
    found = [one.found for one in devices.check_devices(Machine(env={**env, Ascend.container: "0-3"}))]
    expected = f"none: models run on the CPU; {Ascend.container}=0-3, which the container's runtime reads"
    assert expected in found


def test_packages_of_workers_are_those_of_their_interpreter_and_of_models(tmp_path: Path) -> None:
    machine = Machine(ServerConfig(state_dir=tmp_path))
    whole = tmp_path / "environments" / "a-1" / "site"
    whole.mkdir(parents=True)
    (tmp_path / "environments" / "b-2" / "site").mkdir(parents=True)
    (whole.parent / "complete").touch()
    assert machine.worker_packages() == [*map(Path, own().site_dirs), whole]
    absent = Machine(ServerConfig(state_dir=tmp_path, python=tmp_path / "python"))
    assert absent.worker_packages() == [whole]


def test_devices_that_cannot_be_read_fail_with_their_remedy_where_none_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake, unread = FakeAccelerator(0), failed("FPUs", "the driver does not answer", "Start the machine anew.")
    add_accelerator(monkeypatch, fake)
    monkeypatch.setattr(fake, "problems", lambda: [unread])
    assert [one for one in devices.check_devices(Machine(env={})) if one.level is Level.FAILED] == [unread]


def test_a_problem_that_comes_with_the_status_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, problems = FakeAccelerator(1), list[Finding]()
    hangs = failed("FPUs", "the driver hangs", "Start the machine anew.")

    def status() -> dict[str, DeviceStatus]:
        problems.append(hangs)
        return {}

    add_accelerator(monkeypatch, fake)
    monkeypatch.setattr(fake, "problems", lambda: tuple(problems))
    monkeypatch.setattr(fake, "status", status)
    found = list(devices.check_devices(Machine(ServerConfig(accelerator="fake"))))
    assert [one for one in found if one.level is Level.FAILED] == [hangs]


def test_a_kind_of_devices_that_is_named_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = FakeAccelerator(0)
    add_accelerator(monkeypatch, gone)
    found = only(devices.check_devices(Machine(ServerConfig(accelerator="fake"))))
    assert (found.level, found.remedy) == (Level.FAILED, "The start ends with this sentence.")
    assert found.found.startswith("accelerator=fake: no FPU was found")
    assert only(devices.check_devices(Machine(ServerConfig(accelerator="none")))).found == (
        "none, by accelerator=none: models run on the CPU"
    )


def test_what_the_start_warns_of_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeAccelerator(1)
    add_accelerator(monkeypatch, fake)
    unread = failed("FPUs", "f1 cannot be read", "Mend it.")
    monkeypatch.setattr(fake, "problems", lambda: [unread])
    problem, first, *others = devices.check_devices(Machine(ServerConfig(accelerator="fake", simulate_devices=4)))
    assert problem == unread
    assert unread not in others
    assert (first.level, first.found) == (
        Level.WARNING,
        "simulate_devices=4 has no effect: the server has found 1 FPU",
    )
    assert others[0].found == "1: Fake 1"
    assert fake.closed


# -- the system --


def at(port: int) -> ServerConfig:
    free = Address("http", "127.0.0.1", 0)
    return ServerConfig(
        inference_address=Address("http", "127.0.0.1", port),
        management_address=free,
        metrics_address=free,
        grpc_inference_port=0,
        grpc_management_port=0,
    )


def test_a_port_of_another_process_and_of_a_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = only(system.check_ports(Machine(at(port))))
        assert (taken.level, taken.found) == (Level.FAILED, f"127.0.0.1:{port} is in use by another process")
        assert taken.remedy == "Stop it (`ss -ltnp` names it), or set inference_address."
        own = msgspec.structs.replace(info(tmp_path), inference=f"http://127.0.0.1:{port}")
        config = msgspec.structs.replace(at(port), model_store=tmp_path)
        held = only(system.check_ports(Machine(config, running=(own,))))
        assert (held.level, f"pid {own.pid}" in held.found) == (Level.OK, True)
        other = only(system.check_ports(Machine(at(port), running=(own,))))
        assert (other.level, f"whose state is in {tmp_path / '.msx'}" in other.found) == (Level.FAILED, True)
        stop = f"`msx-serve --stop --state-dir {tmp_path / '.msx'}`"
        assert other.remedy == f"Stop it ({stop}), or set inference_address."
    assert only(system.check_ports(Machine(at(port)))).level is Level.OK


def test_a_host_that_this_machine_does_not_have() -> None:
    config = msgspec.structs.replace(at(0), inference_address=Address("http", "192.0.2.1", 8080))
    assert only(system.check_ports(Machine(config))).found.startswith("192.0.2.1:8080 cannot be used: ")


@pytest.mark.parametrize(
    ("hard", "level"),
    [(39, Level.FAILED), (40, Level.WARNING), (1024, Level.WARNING), (4096, Level.OK), (-1, Level.OK)],
)
def test_limits_of_files(monkeypatch: pytest.MonkeyPatch, hard: int, level: Level) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, hard))
    assert only(system.check_descriptors(Machine())).level is level


@pytest.mark.parametrize(
    ("least", "none", "level"), [(0, 0, Level.OK), (1 << 60, 0, Level.WARNING), (0, 1 << 60, Level.FAILED)]
)
def test_room_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, least: int, none: int, level: Level) -> None:
    monkeypatch.setattr(system, "LITTLE_ROOM", least)
    monkeypatch.setattr(system, "NO_ROOM", none)
    assert only(system.check_disk(Machine(ServerConfig(state_dir=tmp_path / "new")))).level is level


def test_a_state_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = only(system.check_disk(Machine(ServerConfig(state_dir=tmp_path / "file" / "state"))))
    assert (finding.level, finding.remedy) == (Level.FAILED, "Set state_dir to a folder that can be.")


@pytest.mark.parametrize(("synchronised", "level"), [(True, Level.OK), (None, Level.OK), (False, Level.WARNING)])
def test_the_clock(monkeypatch: pytest.MonkeyPatch, synchronised: bool | None, level: Level) -> None:
    assert system._synchronised() in (True, False, None)
    monkeypatch.setattr(system, "_synchronised", lambda: synchronised)
    assert only(system.check_time(Machine())).level is level


@pytest.mark.parametrize(("given", "level"), [((), Level.WARNING), (("supervisor",), Level.FAILED)])
def test_where_there_can_be_no_supervisor(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], level: Level
) -> None:
    """A start fails where it was asked for."""
    settings = GivenSettings(ServerConfig(), [], frozenset(given))
    assert [*check_supervisor(settings)] == []
    monkeypatch.setattr(configuration, "lacks", lambda: "lacks or forbids pidfd_open(2)")
    found = only(check_supervisor(settings))
    assert (found.level, found.check) == (level, "supervisor")
    assert found.found.startswith("this system lacks or forbids pidfd_open(2): ")
    assert [*check_supervisor(GivenSettings(ServerConfig(supervisor=False), [], frozenset(given)))] == []


# -- killed servers --


def test_what_killed_servers_left_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "store").mkdir()
    machine = Machine(ServerConfig(model_store=tmp_path / "store"), killed=(info(tmp_path / "other", 4_000_000),))
    assert only(check_left(machine)).found == "nothing of servers that were killed"
    for folder in (tmp_path / "store" / ".msx", tmp_path / "other" / ".msx"):
        (folder / "run").mkdir(parents=True)
        (folder / "server.lock").touch()
    (tmp_path / "msx-serve-path-abcdefgh").mkdir()
    os.utime(tmp_path / "msx-serve-path-abcdefgh", (1, 1))
    findings = list(check_left(machine))
    assert [one.level for one in findings] == [Level.OK] * 3
    assert all(one.found.startswith("removed what a killed server had in ") for one in findings)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "store"]
    assert only(check_left(machine)).found == "nothing of servers that were killed"


def test_what_stays_and_who_goes_on_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = LeftBehind(tmp_path, ("a",) * 10, 1 << 20, "run: Permission denied", ("7 (sleep)",))
    monkeypatch.setattr(left, "remove_left", lambda folder: one if folder == tmp_path / "s" else None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    removed, stayed, process = check_left(Machine(ServerConfig(state_dir=tmp_path / "s")))
    assert removed.found.endswith("(1.0 MiB): a, a, a, a, a, a, a, a and 2 more")
    assert (stayed.level, "run: Permission denied" in stayed.found) == (Level.WARNING, True)
    assert process.remedy == "End it, if it is of no use: `kill 7`."


# -- the command --

FREE = [f"--set={key}=http://127.0.0.1:0" for key in ("inference_address", "management_address", "metrics_address")]
FREE += ["--set=grpc_inference_port=0", "--set=grpc_management_port=0"]


def test_the_command_prints_80_columns(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--state-dir", str(tmp_path), *FREE])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].split(": ")[1].startswith("0 failed, ")
    assert all(len(line) <= 80 or " " not in line[22:] for line in done.stdout.splitlines())


def test_a_wrong_configuration_is_a_finding(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--set=inference_address=nowhere"])
    assert done.exit_code == 1
    assert done.stdout.startswith("failed  configuration ")
    assert "inference_address" in done.stdout


def test_a_mistyped_key_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("enable_token_auth=false\n")
    done = CliRunner().invoke(main, ["doctor", "--ts-config", str(file), "--state-dir", str(tmp_path), *FREE])
    told = " ".join(done.stdout.split())
    assert (done.exit_code, "checks: 1 failed" in told) == (1, True)
    assert "enable_token_auth is not a known key, and is ignored" in told
    assert "-> Did you mean disable_token_authorization=true?" in told
    file.write_text("disable_token_authorization=true\n")
    done = CliRunner().invoke(main, ["doctor", "--ts-config", str(file), "--state-dir", str(tmp_path), *FREE])
    assert (done.exit_code, done.stdout.split()[:3]) == (0, ["ok", "configuration", str(file)])


def test_models_of_the_flags_are_looked_at(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pack_model(tmp_path, name)
    store = ["--model-store", str(tmp_path), "--state-dir", str(tmp_path / "state")]
    done = CliRunner().invoke(main, ["doctor", *store, *FREE, "--models", "a.mar", "b.mar"])
    assert (done.exit_code, re.findall(r"overlap +(\w+):", done.stdout)) == (0, ["a", "b"])
    assert "2 to load" in done.stdout


@pytest.mark.parametrize("args", [["doctor", "a"], ["--stop", "doctor"]])
def test_the_command_does_one_thing(args: list[str]) -> None:
    done = CliRunner().invoke(main, args)
    assert (done.exit_code, "`msx-serve doctor` checks the machine" in done.stderr) == (2, True)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_its_own_help(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert main.main(["doctor", "--set", "x=1", flag], standalone_mode=False) == 0
    said = capsys.readouterr().out
    assert said.startswith("Usage: msx-serve doctor")
    assert "--set" in said
