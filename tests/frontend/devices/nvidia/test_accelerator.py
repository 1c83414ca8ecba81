"""GPUs as the real NVML bindings read them from a library with recorded values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.devices.accelerator import Accelerator, DeviceStatus
from msx_frontend.devices.nvidia import library
from msx_frontend.devices.nvidia.accelerator import Nvidia
from msx_frontend.devices.nvidia.library import _loads
from msx_frontend.findings import Level
from tests.frontend.devices.nvidia.conftest import Open, sentences
from tests.frontend.devices.nvidia.test_torch_build import install_torch
from tests.nvml import A100, H100, MIG_A100, MIG_UUIDS, FakeNvml, mig_instances

FIRST, SECOND = str(H100["uuid"]), str(A100["uuid"])


def ids(accelerator: Accelerator) -> list[str]:
    return [device.id for device in accelerator.detect()]


def health(accelerator: Accelerator) -> list[tuple[str, bool | None]]:
    return [(status.health, status.healthy) for status in accelerator.status().values()]


# -- what there is --


def test_two_cards(open_gpus: Open) -> None:
    gpus = open_gpus()
    devices = gpus.detect()
    assert [(one.id, one.name, one.alone, one.simulated) for one in devices] == [
        (FIRST, "NVIDIA H100 80GB HBM3", False, False),
        (SECOND, "NVIDIA A100-SXM4-40GB", False, False),
    ]
    assert sentences(gpus) == []
    assert gpus.environment(devices) == {"CUDA_VISIBLE_DEVICES": f"{FIRST},{SECOND}"}
    statuses = gpus.status()
    assert statuses[FIRST] == DeviceStatus(
        health="OK",
        healthy=True,
        utilisation=37,
        memory_used=527,
        memory_total=81559,
        temperature=41,
        memory_errors={"corrected": 0, "uncorrected": 0},
        processes={},
        memory_activity=5,
    )
    assert (statuses[SECOND].memory_total, statuses[SECOND].temperature) == (40960, 33)


def test_a_limit(open_gpus: Open) -> None:
    assert [ids(open_gpus(limit)) for limit in (0, 1, 9)] == [[], [FIRST], [FIRST, SECOND]]


def test_an_old_driver_with_less(open_gpus: Open, nvml: FakeNvml) -> None:
    absent = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetTotalEccErrors")
    for function in (*absent, "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlEventSetCreate"):
        nvml.fail(function, 13)
    nvml.fail("nvmlDeviceGetComputeRunningProcesses_v3", 13)
    gpus = open_gpus(1)
    gpus.detect()
    assert gpus.status() == {FIRST: DeviceStatus(health="OK", healthy=True, memory_used=527, memory_total=81559)}
    nvml.fail("nvmlDeviceGetMemoryInfo", 13)
    assert gpus.status() == {FIRST: DeviceStatus()}, "nothing tells that it is well"


def test_mig_instances_stand_for_their_card(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.set({f"gpu1.{key}": value for key, value in (MIG_A100 | mig_instances()).items()})
    gpus = open_gpus()
    devices = gpus.detect()
    assert [(one.id, one.alone) for one in devices] == [(FIRST, False), *((uuid, True) for uuid in MIG_UUIDS)]
    assert devices[1].name == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    statuses = gpus.status()
    assert statuses.keys() == {FIRST, *MIG_UUIDS}
    assert statuses[MIG_UUIDS[1]] == DeviceStatus(health="OK", healthy=True, memory_used=12, memory_total=9856)
    nvml.set({"xid0": "1 94 5 0"})
    assert health(gpus) == [("OK", True), ("OK", True), ("XID 94", False)]
    assert ids(open_gpus(CUDA_VISIBLE_DEVICES=f"MIG-{SECOND}/5/0,{MIG_UUIDS[0]}")) == [MIG_UUIDS[1], MIG_UUIDS[0]]


def test_mig_mode_without_an_instance(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.set({f"gpu1.{key}": value for key, value in MIG_A100.items()})
    gpus = open_gpus()
    assert ids(gpus) == [FIRST]
    (problem,) = sentences(gpus)
    assert problem.startswith(
        f"GPU 1 ({SECOND}) is in MIG mode and has no instance, so no model can run on it. Make one "
    )


def test_the_links_between_cards(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    assert gpus.links() == {}
    nvml.set({"gpu0.nvlink1": 5, "gpu0.level1": 50})
    assert gpus.links() == {(FIRST, SECOND): 7, (SECOND, FIRST): 7}
    nvml.set({"gpu0.level1": 10})
    assert gpus.links() == {(FIRST, SECOND): 3, (SECOND, FIRST): 3}
    nvml.set({"gpu0.nvlink1": 0})
    assert gpus.links() == {(FIRST, SECOND): 1, (SECOND, FIRST): 1}
    one = open_gpus(1)
    one.detect()
    assert one.links() == {}


def test_the_cores_near_a_card(open_gpus: Open, tmp_path: Path) -> None:
    folder = tmp_path / "pci" / "0000:1b:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("0\n")
    (folder / "local_cpulist").write_text("0-3,8\n")
    assert [device.cores for device in open_gpus().detect()] == [{0, 1, 2, 3, 8}, set()]


def test_groups_need_no_ports_of_their_own(open_gpus: Open) -> None:
    assert open_gpus().collective_ports(7, shared=True) == {}


# -- the list of visible devices --


def test_an_inherited_list_limits_and_orders(open_gpus: Open) -> None:
    assert ids(open_gpus(CUDA_VISIBLE_DEVICES="1,0", CUDA_DEVICE_ORDER="PCI_BUS_ID")) == [SECOND, FIRST]
    assert ids(open_gpus(1, CUDA_VISIBLE_DEVICES="GPU-8,GPU-6")) == [SECOND]
    assert [ids(open_gpus(CUDA_VISIBLE_DEVICES=text)) for text in ("", "-1", "7")] == [[], [], []]


@pytest.mark.parametrize("listed", ["7", "GPU-abc", MIG_UUIDS[0]])
def test_a_list_that_names_no_device_of_this_machine(open_gpus: Open, listed: str) -> None:
    gpus = open_gpus(CUDA_VISIBLE_DEVICES=listed)
    assert ids(gpus) == []
    assert sentences(gpus) == [
        f"CUDA_VISIBLE_DEVICES={listed} names none of the GPUs that can be read here (2), so none is used. "
        "Name them as `nvidia-smi -L` does, by number (from 0, also in a container) or by UUID, or unset the variable."
    ]


@pytest.mark.parametrize("listed", ["abc", "0,0", f"{FIRST},{FIRST}"])
def test_a_list_of_which_cuda_takes_nothing(open_gpus: Open, listed: str) -> None:
    gpus = open_gpus(CUDA_VISIBLE_DEVICES=listed)
    assert (ids(gpus), gpus._process) == ([], None)
    assert sentences(gpus) == [
        f"CUDA_VISIBLE_DEVICES={listed} leaves no GPU: CUDA takes nothing from a list that has a GPU twice, or begins "
        "with no name of one. Name each GPU once, by number or by UUID (`nvidia-smi -L`), or unset the variable."
    ]


@pytest.mark.parametrize("listed", ["", "-1", " -1", "none", "NoDevFiles"])
def test_a_list_that_hides_all_devices_is_no_problem(open_gpus: Open, listed: str) -> None:
    gpus = open_gpus(CUDA_VISIBLE_DEVICES=listed)
    assert (ids(gpus), gpus.problems(), gpus._process) == ([], [], None)


def test_numbers_without_an_order_of_cards_that_differ(open_gpus: Open) -> None:
    gpus = open_gpus(CUDA_VISIBLE_DEVICES="1")
    assert ids(gpus) == [SECOND]
    assert sentences(gpus) == [
        "CUDA_VISIBLE_DEVICES has numbers, the GPUs differ, and only CUDA knows their order by speed, its default: the "
        "numbers are taken in the order of the PCI bus. Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID "
        "(`nvidia-smi -L`)."
    ]
    assert [one.level for one in gpus.problems()] == [Level.WARNING], "no GPU is missing for it"


def test_simulated_ones_have_the_names_of_the_list() -> None:
    def simulated(text: str | None) -> list[str]:
        env = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
        devices = Nvidia(env=env).simulated(2)
        assert all(one.simulated for one in devices)
        assert [one.alone for one in devices] == [one.id.startswith("MIG-") for one in devices]
        return [one.id for one in devices]

    zero = "GPU-00000000-0000-0000-0000-00000000000"
    assert simulated(None) == simulated("") == [f"{zero}0", f"{zero}1"]
    assert simulated("4,5,6") == [f"{zero}4", f"{zero}5"]
    assert simulated("GPU-abc,MIG-1") == ["GPU-abc"]
    assert simulated("MIG-1,MIG-2") == ["MIG-1", "MIG-2"]


# -- health --


def test_an_xid_stays(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    nvml.set({"xid0": "1 31", "xid1": "1 79"})
    assert health(gpus) == [("OK", True), ("XID 79", False)]
    nvml.set({"xid0": None, "xid1": None})
    assert gpus._process is not None
    gpus._process.stop()
    assert health(gpus) == [("OK", True), ("XID 79", False)]


def test_more_xids_than_one_reading_takes(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    nvml.set({**{f"xid{number}": "0 13" for number in range(64)}, "xid64": "0 48"})
    assert health(gpus)[0] == ("OK", True)
    assert health(gpus)[0] == ("XID 48", False)


@pytest.mark.parametrize(("code", "word"), [(15, "lost"), (16, "reset required")])
def test_a_card_that_fell_off_the_bus(open_gpus: Open, nvml: FakeNvml, code: int, word: str) -> None:
    gpus = open_gpus()
    gpus.detect()
    for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMigMode"):
        nvml.fail(function, code, card=1)
    assert health(gpus) == [("OK", True), (word, False)]


def test_a_card_that_is_not_listed_any_more(open_gpus: Open, nvml: FakeNvml) -> None:
    """As after a restart of the process, when the driver has dropped it; here it drops both."""
    gpus = open_gpus()
    gpus.detect()
    assert gpus._process is not None
    gpus._process.stop()
    nvml.set({"count": 0})
    assert health(gpus) == [("missing", False), ("missing", False)]


def test_rows_to_be_remapped_and_errors_of_memory(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    nvml.set({"gpu0.rows": "3 1 1 0", "gpu1.rows": "0 0 0 1", "gpu0.uncorrected": 2})
    assert health(gpus) == [("row remapping pending", False), ("row remapping failed", False)]
    assert gpus.status()[FIRST].memory_errors == {"corrected": 0, "uncorrected": 2}


# -- processes --


def test_the_memory_of_processes(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.set({"gpu0.processes": "41 1200 42 300 43 -1", "gpu0.graphics": "42 320 44 5", "gpu0.mps": "45 7"})
    gpus = open_gpus()
    gpus.detect()
    assert gpus.status()[FIRST].processes == {41: 1200, 42: 320, 44: 5, 45: 7}
    nvml.set({"gpu0.processes": " ".join(f"{pid} 1" for pid in range(1, 200))})
    assert len(gpus.status()[FIRST].processes or ()) == 128
    nvml.fail("nvmlDeviceGetComputeRunningProcesses_v3", 4)
    assert gpus.status()[FIRST].processes is None


@pytest.mark.parametrize("target", ["pid:[4026532281]", None])
def test_ids_of_the_hosts_processes_say_nothing_in_a_container(
    open_gpus: Open, nvml: FakeNvml, tmp_path: Path, target: str | None
) -> None:
    nvml.set({"gpu0.processes": "41 1200"})
    namespace = tmp_path / "container"
    if target:
        os.symlink(target, namespace)
    gpus = open_gpus(namespace=namespace)
    gpus.detect()
    assert gpus.status()[FIRST].processes is None


# -- what is wrong --


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            3,
            "NVIDIA's driver does not support the reading of its GPUs here (NVML: not supported). Update the driver;",
        ),
        (4, "this server may not read NVIDIA's GPUs (NVML: no permission). Let its user read and write /dev/nvidiactl"),
        (9, "NVIDIA's driver is not loaded, though its library libnvidia-ml.so.1 is here. Run `modprobe nvidia`, or"),
        (13, "NVIDIA's driver is too old: its library lacks a function that is needed. Update the driver."),
        (18, "NVIDIA's driver in the kernel and its library libnvidia-ml.so.1 are of different versions. Restart the "),
        (
            999,
            "NVIDIA's GPUs cannot be read (NVML error 999: Unknown Error). Look at what `nvidia-smi` and `dmesg` say.",
        ),
    ],
)
def test_a_library_that_does_not_start(open_gpus: Open, nvml: FakeNvml, code: int, words: str) -> None:
    nvml.fail("nvmlInitWithFlags", code)
    gpus = open_gpus()
    assert (ids(gpus), gpus.status(), gpus.links()) == ([], {}, {})
    (problem,) = sentences(gpus)
    assert problem.startswith(words)
    assert [one.level for one in gpus.problems()] == [Level.FAILED]
    nvml.fail("nvmlInitWithFlags")
    assert ids(gpus) == [FIRST, SECOND]
    assert sentences(gpus) == []


def test_a_library_that_cannot_be_loaded(open_gpus: Open, nvml: FakeNvml) -> None:
    (nvml.folder / library.NAME).write_bytes(b"of another machine")
    gpus = open_gpus()
    assert ids(gpus) == []
    assert sentences(gpus)[0].startswith("NVIDIA's library libnvidia-ml.so.1 cannot be loaded. Install the driver's ")


def test_half_of_the_cards_cannot_be_read(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.fail("nvmlDeviceGetHandleByIndex_v2", 15, card=0)
    gpus = open_gpus(CUDA_VISIBLE_DEVICES="0,1", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert ids(gpus) == [SECOND], "its number is still 1"
    assert sentences(gpus) == [
        "GPUs that cannot be read are left out, 1 of 2: GPU 0 (GPU is lost). Look at what `nvidia-smi` and `dmesg` "
        "say; models run on the others."
    ]


def test_no_card_can_be_read(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.fail("nvmlDeviceGetHandleByIndex_v2", 15)
    gpus = open_gpus()
    assert ids(gpus) == []
    assert sentences(gpus) == [
        "GPUs that cannot be read are left out, 2 of 2: GPU 0 (GPU is lost), GPU 1 (GPU is lost). Look at what "
        "`nvidia-smi` and `dmesg` say."
    ]


def test_a_machine_without_the_library_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_loads", lambda: False)
    monkeypatch.setattr(library, "FOLDERS", ())
    gpus = Nvidia(env={"LD_LIBRARY_PATH": "/nowhere:"})
    assert (ids(gpus), sentences(gpus), gpus.status(), list(gpus.check_software(()))) == ([], [], {}, [])
    assert gpus._process is None
    gpus.close()


def test_a_driver_without_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container that was given what computes, and not what tells of it."""
    monkeypatch.setattr(library, "DRIVER", tmp_path)
    gpus = Nvidia(env={})
    assert ids(gpus) == []
    assert sentences(gpus) == [
        f"NVIDIA's driver is here ({tmp_path}), but not its library libnvidia-ml.so.1, by which GPUs are read. Start "
        "the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the driver's libraries."
    ]


def test_a_library_that_only_the_loader_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FOLDERS", ("/wsl",))
    monkeypatch.setattr(library, "_loads", _loads)
    monkeypatch.setattr(library, "NAME", "libc.so.6")
    assert library.library_path({"LD_LIBRARY_PATH": "/a:/b"}) == "/a:/b:/wsl"
    monkeypatch.setattr(library, "NAME", "libnone.so.6")
    assert library.library_path({"LD_LIBRARY_PATH": "/a:/b"}) is None


def test_versions_of_the_driver_and_of_torch(open_gpus: Open, nvml: FakeNvml, tmp_path: Path) -> None:
    def findings(*packages: Path) -> dict[str, tuple[Level, str]]:
        gpus = open_gpus()
        gpus.detect()
        return {one.check: (one.level, one.found) for one in gpus.check_software(packages)}

    driver: Any = {"NVIDIA driver": (Level.OK, "550.54.15, for CUDA up to 12.4")}
    assert findings() == driver
    newer = (Level.WARNING, f"2.9 in {tmp_path} was built with CUDA 13.0, and the driver takes CUDA 12 at most")
    assert findings(install_torch(tmp_path, "2.9", "cuda: Optional[str] = '13.0'")) == {**driver, "torch": newer}
    nvml.set({"driver": None, "cuda": None})
    assert findings() == {"NVIDIA driver": (Level.OK, "of unknown version")}
