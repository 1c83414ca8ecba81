"""The devices in the output of `msx-serve --status`."""

from __future__ import annotations

from msx_frontend.cli.device_table import HEADINGS, device_rows, devices_of

MB = 1 << 20
GPU = {"device": 0, "id": "GPU-8a1f", "name": "NVIDIA H100"}


def test_a_device_with_all_figures_and_one_with_none() -> None:
    figures = {"utilization": 0, "memoryUsed": 512 * MB, "memoryTotal": 81559 * MB, "temperature": 41}
    errors = {"memoryErrors": {"corrected": 2, "uncorrected": 0}}
    rows = device_rows([{**GPU, **figures, **errors}, {**GPU, "memoryErrors": {"corrected": 0}}, GPU])
    assert rows == [
        HEADINGS,
        ("0", "GPU-8a1f", "NVIDIA H100", "0 %", "512 of 81559 MB", "41 °C", "2 corrected"),
        ("0", "GPU-8a1f", "NVIDIA H100", "-", "-", "-", "0"),
        ("0", "GPU-8a1f", "NVIDIA H100", "-", "-", "-", "-"),
    ]


def test_simulated_devices_are_not_shown() -> None:
    assert device_rows([{**GPU, "simulated": True}]) == []


def test_the_devices_of_a_worker() -> None:
    used = [{"device": 1, "id": "GPU-8a1f", "workerMemory": 512 * MB}, {"device": 3, "id": "GPU-77"}]
    assert devices_of({"devices": "GPU-8a1f,GPU-77", "deviceUsage": used}) == "1 (512 MB),3"
    assert devices_of({"devices": "0,3"}) == "0,3", "of an older server"
    assert devices_of({}) == "cpu"
