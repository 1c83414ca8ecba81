"""The messages that a reading of NVML makes. Here the library is loaded into the process of the test."""

from __future__ import annotations

import ctypes

import msgspec
import pynvml
import pytest

from msx_frontend.devices.nvidia.messages import (
    Gpu,
    GpuFigures,
    GpuLink,
    GpuReading,
    Inventory,
    MigInstance,
    NvmlAnswer,
    NvmlCall,
    UnreadableGpu,
    Xid,
)
from msx_frontend.devices.nvidia.program import _answer
from msx_frontend.devices.nvidia.reading import NvmlReader
from tests.nvml import A100, H100, MIG_A100, MIG_UUIDS, NAME, FakeNvml, mig_instances

FIRST, SECOND = str(H100["uuid"]), str(A100["uuid"])
ECC = {"corrected": 0, "uncorrected": 0}


@pytest.fixture(autouse=True)
def _loaded(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(nvml.folder / NAME)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


def test_two_cards(nvml: FakeNvml) -> None:
    reader = NvmlReader()
    cards = (
        Gpu(0, FIRST, "NVIDIA H100 80GB HBM3", "0000:1B:00.0"),
        Gpu(1, SECOND, "NVIDIA A100-SXM4-40GB", "0000:43:00.0"),
    )
    assert reader.inventory() == Inventory("550.54.15", 12040, cards)
    nvml.set({"gpu0.processes": "41 1200 42 300", "gpu0.graphics": "42 320", "gpu0.level1": 30, "xid0": "0 48"})
    first = GpuFigures(FIRST, 0, 37, 527, 81559, 41, ECC, processes={41: 1200, 42: 320}, memory_activity=5)
    second = GpuFigures(SECOND, 0, 0, 1105, 40960, 33, ECC, processes={}, memory_activity=0)
    assert reader.figures() == GpuReading((first, second), (Xid(FIRST, 48),))
    assert reader.links() == [GpuLink(FIRST, SECOND, 5)]
    nvml.set({"gpu0.nvlink1": 0})
    assert reader.links() == [GpuLink(FIRST, SECOND, 1)]


def test_mig_instances_and_a_card_that_cannot_be_read(nvml: FakeNvml) -> None:
    nvml.set({f"gpu1.{key}": value for key, value in (MIG_A100 | mig_instances()).items()})
    nvml.fail("nvmlDeviceGetUUID", 999, card=0)
    reader = NvmlReader()
    instances = (
        MigInstance(MIG_UUIDS[0], "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 1, 0),
        MigInstance(MIG_UUIDS[1], "NVIDIA A100-SXM4-40GB MIG 2g.10gb", 5, 0),
    )
    card = Gpu(1, SECOND, "NVIDIA A100-SXM4-40GB", "0000:43:00.0", instances)
    unreadable = (UnreadableGpu(0, "Unknown Error"),)
    assert reader.inventory() == Inventory("550.54.15", 12040, (card,), unreadable)
    nvml.set({"xid0": "1 94 5 0", "xid1": "1 79", "xid2": "0 79"})
    figures = (GpuFigures(MIG_UUIDS[0], 0, None, 25, 20096), GpuFigures(MIG_UUIDS[1], 0, None, 12, 9856))
    assert reader.figures() == GpuReading(figures, (Xid(SECOND, 94, 5, 0), Xid(SECOND, 79)))
    assert reader.links() == []


def test_a_card_that_could_not_be_opened_is_tried_again(nvml: FakeNvml) -> None:
    nvml.fail("nvmlDeviceGetUUID", 999, card=0)
    reader = NvmlReader()
    assert [one.uuid for one in reader.figures().devices] == [SECOND]
    assert [one.index for one in reader.inventory().unreadable] == [0]
    nvml.fail("nvmlDeviceGetUUID", None, card=0)
    assert sorted(one.uuid for one in reader.figures().devices) == sorted([FIRST, SECOND])
    assert reader.inventory().unreadable == ()


def test_the_error_that_makes_a_card_unusable_is_in_its_figures(nvml: FakeNvml) -> None:
    nvml.fail("nvmlDeviceGetMemoryInfo", 15, card=0)
    nvml.fail("nvmlDeviceGetMemoryInfo_v2", 3)
    nvml.set({"gpu1.rows": "1 2 1 1"})
    first, second = NvmlReader().figures().devices
    assert (first.error, first.memory_total, first.utilisation) == (15, None, 37)
    assert (second.error, second.memory_total) == (0, 40960)
    assert (second.remap_pending, second.remap_failed) == (True, True)


def test_answers_go_over_the_wire_whole(nvml: FakeNvml) -> None:
    nvml.set({"gpu0.processes": "41 1200"})
    reader = NvmlReader()
    wired = msgspec.json.decode(msgspec.json.encode(_answer(reader, NvmlCall("figures"))), type=NvmlAnswer)
    assert msgspec.convert(wired.result, GpuReading, str_keys=True) == reader.figures()
    nvml.fail("nvmlDeviceGetCount_v2", 999)
    assert _answer(NvmlReader(), NvmlCall("links")) == NvmlAnswer(code=999, message="Unknown Error")
