from pathlib import Path

import pytest

from msx_frontend.devices.ascend import Ascend, visible_ids
from msx_frontend.devices.npu_smi import ChipKey
from tests.npu_smi import FakeNpuSmi

DATA = Path(__file__).parent / "data" / "npu_smi"


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without npu-smi."""
    monkeypatch.setattr("msx_frontend.devices.npu_smi._FOLDERS", ())
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


def install(tmp_path: Path, script: str) -> None:
    tool = tmp_path / "npu-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def install_sample(tmp_path: Path, machine: str) -> None:
    """`910b_pcie` is a 910b by all but its topology."""
    chips = machine.removesuffix("_pcie").replace("910a", "910b")
    cases = {"info -m": f"{chips}_mapping", "info": f"{chips}_info", "info -t topo": f"{machine}_topo"}
    install(
        tmp_path,
        f'case "$*" in {" ".join(f"{words!r}) cat {DATA}/{name}.txt;;" for words, name in cases.items())} esac',
    )


def ids(env: dict[str, str], number: int | None = None, dev: Path = Path("/nowhere")) -> list[int]:
    return [int(npu.id) for npu in Ascend(number, env, dev=dev).detect()]


def test_chips_with_their_state(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910c")
    ascend = Ascend(None, env)
    npus, statuses = ascend.detect(), ascend.status()
    assert [npu.id for npu in npus] == [str(number) for number in range(8)]
    assert (npus[3].key, npus[3].name, npus[3].simulated) == (ChipKey(1, 1), "Ascend910", False)
    assert statuses.keys() == {npu.id for npu in npus}
    assert statuses["3"].memory_total == 65536


@pytest.mark.parametrize(
    ("link", "processes"), [("pid:[4026531836]", [{}, {31337: 29110}]), ("pid:[4026532841]", [None, None])]
)
def test_processes_are_known_by_the_hosts_ids_alone(
    tmp_path: Path, env: dict[str, str], link: str, processes: list[dict[int, int] | None]
) -> None:
    install_sample(tmp_path, "910b")
    (tmp_path / "pid").symlink_to(link)
    ascend = Ascend(2, env, namespace=tmp_path / "pid")
    ascend.detect()
    assert [status.processes for status in ascend.status().values()] == processes


def test_a_limit_on_real_devices(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910b")
    assert ids(env, 2) == [0, 1]
    assert ids(env, 99) == list(range(8))


def test_an_inherited_list_limits_and_is_mapped(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910b")
    env["ASCEND_RT_VISIBLE_DEVICES"] = "4,5,7"
    assert ids(env) == [4, 5, 7]
    assert ids(env, 2) == [4, 5]


def test_a_tool_without_the_mapping(tmp_path: Path, env: dict[str, str]) -> None:
    install(tmp_path, f'case "$*" in info) cat {DATA}/910c_info.txt;; *) exit 1;; esac')
    assert ids(env) == list(range(8))


@pytest.mark.parametrize("script", ["exit 1", "echo dcmi module initialize failed.", "exec sleep 60"])
def test_device_files_when_the_tool_does_not_help(tmp_path: Path, env: dict[str, str], script: str) -> None:
    install(tmp_path, script)
    for name in ("davinci10", "davinci2", "davinci_manager", "null"):
        (tmp_path / name).touch()
    ascend = Ascend(None, env, dev=tmp_path, timeout=0.2)
    assert [npu.id for npu in ascend.detect()] == ["2", "10"]
    assert ascend.status() == {}


def test_a_machine_without_devices(env: dict[str, str]) -> None:
    assert ids(env) == ids(env, 3) == []


def test_simulated_devices_have_the_inherited_names(env: dict[str, str]) -> None:
    npus = Ascend(None, env).simulated(3)
    assert [(npu.id, npu.simulated) for npu in npus] == [("0", True), ("1", True), ("2", True)]
    env["ASCEND_RT_VISIBLE_DEVICES"] = "4,5,6"
    assert [npu.id for npu in Ascend(None, env).simulated(2)] == ["4", "5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0,1", [0, 1]), ("1, 2,3", [1]), ("1,3,8", [1, 3]), ("3,2", [3]), ("2,2", [2]), ("", []), ("-1", []), ("x", [])],
)
def test_the_list_is_read_as_cann_reads_it(text: str, expected: list[int]) -> None:
    assert visible_ids({"ASCEND_RT_VISIBLE_DEVICES": text}, range(8)) == expected


def test_without_a_list_there_is_no_limit() -> None:
    assert visible_ids({}, range(8)) is None


def test_the_cores_near_each_chip(tmp_path: Path, env: dict[str, str]) -> None:
    install_sample(tmp_path, "910b")
    npus = Ascend(None, env).detect()
    assert (npus[0].cores, npus[7].cores) == (frozenset(range(144, 168)), frozenset(range(48, 72)))


@pytest.mark.parametrize(("node", "cores"), [("1", {4, 5, 8}), ("-1", set()), ("x", set()), (None, set())])
def test_cores_as_the_kernel_knows_them(tmp_path: Path, env: dict[str, str], node: str | None, cores: set[int]) -> None:
    """Where the tool does not show them."""
    install_sample(tmp_path, "910c")
    folder = tmp_path / "pci" / "0000:93:00.0"
    folder.mkdir(parents=True)
    if node is not None:
        (folder / "numa_node").write_text(f"{node}\n")
        (folder / "local_cpulist").write_text("4-5,8\n")
    npus = Ascend(None, env, pci=tmp_path / "pci").detect()
    assert [npu.cores for npu in npus if npu.bus_id.lower() == folder.name] == [cores]


def test_an_unknown_health_counts_where_it_was_known_before(tmp_path: Path) -> None:
    """Some containers never show more: their devices are not unhealthy for it."""
    tool = FakeNpuSmi(tmp_path / "smi", ["0", "0"])
    tool.set_health("OK", "UNKNOWN")
    ascend = Ascend(None, tool.environment)
    ascend.detect()
    assert [status.healthy for status in ascend.status().values()] == [True, None]
    tool.set_health("UNKNOWN", "UNKNOWN")
    assert [status.healthy for status in ascend.status().values()] == [False, None]
