from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.devices.nvidia.accelerator import Nvidia
from tests.nvml import A100, H100, FakeNvml

Open = Callable[..., Nvidia]


def sentences(accelerator: Accelerator) -> list[str]:
    """Its problems with their remedies."""
    return [f"{one.found}. {one.remedy}" for one in accelerator.problems()]


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    """Two cards."""
    return FakeNvml(tmp_path / "nvml", H100, A100)


@pytest.fixture
def host_pids(tmp_path: Path) -> Path:
    """The PID namespace of a process on the host."""
    link = tmp_path / "pid"
    os.symlink("pid:[4026531836]", link)
    return link


@pytest.fixture
def open_gpus(nvml: FakeNvml, tmp_path: Path, host_pids: Path) -> Iterator[Open]:
    """Opens an accelerator with the library, and closes it behind the test. Keywords beyond its own are variables."""
    opened: list[Nvidia] = []

    def open_(limit: int | None = None, *, timeout: float = 60.0, namespace: Path = host_pids, **env: str) -> Nvidia:
        env = {**nvml.environment, **env}
        opened.append(Nvidia(limit, env, pci=tmp_path / "pci", namespace=namespace, timeout=timeout))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
