"""The memory and the cores that a cgroup leaves, of both versions of the kernel's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from msx_core import cgroup as _cgroup
from msx_core.cgroup import cores, cores_by_quota, memory_available, memory_limit

MB = 1 << 20
V1_UNLIMITED = "9223372036854771712"


class Machine:
    """A process's files in `proc`, and what its cgroups say below `mount`."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.mount = folder / "proc", folder / "c group"
        self.proc.mkdir()
        self.mount.mkdir()

    def process(self, cgroup: str, kind: str, root: str = "/") -> None:
        mount = str(self.mount).replace(" ", r"\040")
        (self.proc / "cgroup").write_text(cgroup)
        lines = f"31 23 0:28 / /proc rw - proc proc rw\n35 31 0:32 {root} {mount} rw,relatime shared:9 - {kind}\n"
        (self.proc / "mountinfo").write_text(lines)

    def write(self, path: str, files: Mapping[str, object]) -> None:
        folder = self.mount / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / name).write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_v2_has_the_lowest_limit_of_the_cgroup_and_of_those_above(machine: Machine) -> None:
    machine.process("0::/pod/container\n", "cgroup2 cgroup2 rw")
    machine.write("", {})
    machine.write("pod", {"memory.max": 300 * MB, "memory.current": 150 * MB, "memory.stat": "anon 5\n"})
    machine.write("pod/container", {"memory.max": "max", "memory.current": 100 * MB})
    assert memory_limit(machine.proc) == 300 * MB
    assert memory_available(machine.proc) == 150 * MB


def test_pages_of_files_can_be_had(machine: Machine) -> None:
    machine.process("0::/\n", "cgroup2 cgroup2 rw")
    stat = f"anon {10 * MB}\nactive_file {20 * MB}\ninactive_file {50 * MB}\nshmem {9 * MB}"
    machine.write("", {"memory.max": 200 * MB, "memory.current": 180 * MB, "memory.stat": stat})
    assert memory_available(machine.proc) == 90 * MB


def test_v1_by_its_own_names(machine: Machine) -> None:
    machine.process("9:name=systemd:/\n4:cpu,memory:/pod\n0::/elsewhere\n", "cgroup cgroup rw,cpu,memory")
    machine.write("", {"memory.limit_in_bytes": V1_UNLIMITED, "memory.usage_in_bytes": 7})
    stat = f"active_file 1\ntotal_active_file {MB}\ntotal_inactive_file {2 * MB}"
    files = {"memory.limit_in_bytes": 100 * MB, "memory.usage_in_bytes": 60 * MB, "memory.stat": stat}
    machine.write("pod", files)
    assert memory_limit(machine.proc) == 100 * MB
    assert memory_available(machine.proc) == 43 * MB


def test_v1_without_a_limit_is_the_machine(machine: Machine) -> None:
    machine.process("4:memory:/\n", "cgroup cgroup rw,memory")
    machine.write("", {"memory.limit_in_bytes": V1_UNLIMITED, "memory.usage_in_bytes": 7})
    assert memory_limit(machine.proc) == psutil.virtual_memory().total


@pytest.mark.parametrize("path", ["/docker/1f", "/somewhere/else"])
def test_a_container_sees_its_own_cgroup_as_the_root(machine: Machine, path: str) -> None:
    machine.process(f"4:memory:{path}\n", "cgroup cgroup rw,memory", root="/docker/1f")
    machine.write("", {"memory.limit_in_bytes": 100 * MB, "memory.usage_in_bytes": 99 * MB})
    assert memory_limit(machine.proc) == 100 * MB
    assert memory_available(machine.proc) == MB


def test_a_cgroup_above_its_limit_has_nothing_to_give(machine: Machine) -> None:
    machine.process("0::/\n", "cgroup2 cgroup2 rw")
    machine.write("", {"memory.max": 100 * MB, "memory.current": 101 * MB})
    assert memory_available(machine.proc) == 0


def test_without_cgroups_the_machine_counts(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "none") == psutil.virtual_memory().total
    assert 0 < memory_available(tmp_path / "none") <= psutil.virtual_memory().total


def test_of_this_process() -> None:
    assert 0 < memory_available() <= memory_limit() <= psutil.virtual_memory().total


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cgroup, "_runnable", lambda: 8)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        ("max 100000", "200000 100000", 2),
        ("150000 100000", "max 100000", 2),  # a part of a core is worth a thread
        ("300000 100000", "50000 100000", 1),
        ("max 100000", "max 100000", None),
        ("800000 100000", "900000 100000", None),
    ],
)
def test_v2_has_the_cores_of_the_lowest_quota(machine: Machine, pod: str, container: str, expected: int | None) -> None:
    machine.process("0::/pod/container\n", "cgroup2 cgroup2 rw")
    machine.write("", {})
    machine.write("pod", {"cpu.max": pod})
    machine.write("pod/container", {"cpu.max": container})
    assert cores_by_quota(machine.proc) == expected
    assert cores(machine.proc) == (expected or 8)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("quota", "expected"), [(250000, 3), (-1, None)])
def test_v1_has_its_quota_in_two_files(machine: Machine, quota: int, expected: int | None) -> None:
    machine.process("4:cpu,cpuacct:/pod\n0::/elsewhere\n", "cgroup cgroup rw,cpu,cpuacct")
    machine.write("pod", {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": 100000})
    assert cores_by_quota(machine.proc) == expected


def test_without_a_quota_cores_are_those_that_the_process_may_run_on(tmp_path: Path) -> None:
    assert cores_by_quota(tmp_path / "none") is None
    assert cores(tmp_path / "none") == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["", "x y", "0 100000", "100000 0", "1"])
def test_files_that_say_nothing_limit_nothing(machine: Machine, text: str) -> None:
    machine.process("0::/\n", "cgroup2 cgroup2 rw")
    machine.write("", {"cpu.max": text})
    assert cores_by_quota(machine.proc) is None
