"""The process that reads NVML: what it may see, and how it ends, also in the middle of a call."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from msx_frontend.devices.nvidia.accelerator import Nvidia
from msx_frontend.devices.nvidia.messages import Inventory
from msx_frontend.devices.nvidia.problems import UnreadableError, failure
from msx_frontend.devices.nvidia.process import NvmlProcess
from tests.backend.harness import wait_until
from tests.frontend.devices.nvidia.conftest import Open, sentences
from tests.nvml import FakeNvml
from tests.processes import is_alive

HANGS = "hang.nvmlDeviceGetUtilizationRates"


def has_ended(child: int) -> bool:
    """All threads have ended, so that the parent may wait for it: it is a zombie once its first thread has."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def process_of(gpus: Nvidia) -> psutil.Process:
    assert gpus._process is not None
    assert gpus._process._process is not None
    return psutil.Process(gpus._process._process.pid)


def test_it_has_one_variable_and_three_descriptors(open_gpus: Open, nvml: FakeNvml) -> None:
    with open(os.devnull) as inheritable:
        os.set_inheritable(inheritable.fileno(), True)
        gpus = open_gpus(MSX_API_KEY="secret", CUDA_VISIBLE_DEVICES="0,1", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        gpus.detect()
    process = process_of(gpus)
    assert process.environ()["LD_LIBRARY_PATH"].split(":")[0] == str(nvml.folder)
    assert process.environ().keys() == {"LD_LIBRARY_PATH"}
    assert process.cwd() == "/"
    assert process.num_fds() == 3
    libraries = {Path(one.path).name for one in process.memory_maps()}
    assert "libnvidia-ml.so.1" in libraries
    assert not [name for name in libraries if name.startswith("libcuda")]


def test_it_ends_with_close_and_where_there_is_nothing_to_read(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    process = process_of(gpus)
    gpus.close()
    assert not is_alive(process)
    nvml.set({"count": 0})
    empty = open_gpus()
    assert empty.detect() == []
    assert empty._process is not None
    assert empty._process._process is not None
    assert empty._process._process.poll() == 0


def test_a_call_that_hangs_is_told_once_and_the_next_reading_starts_anew(
    open_gpus: Open, nvml: FakeNvml, caplog: pytest.LogCaptureFixture
) -> None:
    gpus = open_gpus()
    gpus.detect()
    hanging = process_of(gpus)
    nvml.set({HANGS: 1})
    assert gpus._process is not None
    gpus._process._limit = gpus._process._timeout = 0.05
    with caplog.at_level(logging.WARNING):
        assert gpus.status() == {}
    words = "NVIDIA's driver has not answered within 0.05 s, and the process that reads its GPUs was ended. Look at "
    assert sentences(gpus)[0].startswith(words)
    assert [message.startswith(words) for message in caplog.messages] == [True]
    assert not is_alive(hanging)
    nvml.set({HANGS: None})
    gpus._process._timeout = 60
    assert len(gpus.status()) == 2
    assert sentences(gpus) == []


def test_a_problem_is_logged_once_where_readings_overlap(
    open_gpus: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gpus = open_gpus()
    gpus.detect()
    during: list[int] = []

    def fail(call: str, answer: type) -> object:
        """Another reading fails meanwhile."""
        during.append(len(gpus.problems()))
        if len(during) % 2:
            gpus.status()
        raise UnreadableError(failure(999, "Unknown Error"))

    monkeypatch.setattr(gpus._process, "ask", fail)
    for _ in range(2):
        assert gpus.status() == {}
    assert [message.startswith("NVIDIA's GPUs cannot be read (NVML error 999: ") for message in caplog.messages] == [
        True
    ]
    assert during == [0, 0, 1, 1], "a reading that goes on hides none"


def test_a_driver_that_hangs_from_the_start(open_gpus: Open, nvml: FakeNvml) -> None:
    nvml.set({"hang.nvmlInitWithFlags": 1})
    gpus = open_gpus(timeout=0.05)
    assert gpus.detect() == ()
    assert sentences(gpus)[0].startswith("NVIDIA's driver has not answered within 0.15 s, and")
    assert (gpus.status(), gpus.links()) == ({}, {})


def test_another_is_started_when_one_was_killed(open_gpus: Open) -> None:
    gpus = open_gpus()
    gpus.detect()
    process = process_of(gpus)
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: has_ended(process.pid))
    assert len(gpus.status()) == 2
    assert process_of(gpus).pid != process.pid


def test_one_that_dies_in_a_call(open_gpus: Open, nvml: FakeNvml) -> None:
    gpus = open_gpus()
    gpus.detect()
    nvml.set({HANGS: 1})
    statuses: list[object] = []
    asking = threading.Thread(target=lambda: statuses.append(gpus.status()))
    asking.start()
    wait_until(lambda: nvml.hangs)
    process_of(gpus).send_signal(signal.SIGKILL)
    asking.join()
    assert statuses == [{}]
    assert sentences(gpus) == [
        "the process that reads NVIDIA's GPUs ended with code -9. The log has its last words. A server that "
        "has found its GPUs at the start tries again by itself."
    ]


def test_close_does_not_wait_for_a_call_that_hangs(
    open_gpus: Open, nvml: FakeNvml, caplog: pytest.LogCaptureFixture
) -> None:
    gpus = open_gpus()
    gpus.detect()
    process = process_of(gpus)
    nvml.set({HANGS: 1})
    statuses: list[object] = []
    asking = [threading.Thread(target=lambda: statuses.append(gpus.status())) for _ in range(2)]
    for one in asking:
        one.start()
    wait_until(lambda: nvml.hangs)
    gpus.close()
    for one in asking:
        one.join()
    assert statuses == [{}, {}]
    assert not is_alive(process)
    assert gpus._process is not None
    assert gpus._process._connection is None, "none was started for the second"
    assert caplog.messages == []


def test_none_is_started_beside_one_that_does_not_end(nvml: FakeNvml) -> None:
    """It waits in the kernel, where no signal reaches it."""
    process = NvmlProcess(str(nvml.folder), 60)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stuck:
        process._process = stuck
        with pytest.raises(UnreadableError, match=f"process {stuck.pid}, which read its GPUs, was killed and has not"):
            process.ask("inventory", Inventory)
    assert len(process.ask("inventory", Inventory).gpus) == 2
    process.close()


def test_one_that_cannot_be_started(open_gpus: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system has no process left."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    gpus = open_gpus()
    assert gpus.detect() == ()
    assert sentences(gpus) == [
        "the process that reads NVIDIA's GPUs cannot be started ([Errno 2] No such file or directory: "
        "'/nowhere/python'). Let the server have more processes and memory. A server that has found its "
        "GPUs at the start tries again by itself."
    ]


@pytest.mark.parametrize("call", ["links", "status"])
def test_it_ends_with_a_server_that_was_killed(nvml: FakeNvml, call: str) -> None:
    """Also in the middle of a call that hangs."""
    nvml.set({HANGS: 1})
    code = (
        "import sys; from msx_frontend.devices.nvidia.accelerator import Nvidia\n"
        f"gpus = Nvidia(env={nvml.environment!r}); gpus.detect()\n"
        "print(gpus._process._process.pid, flush=True)\n"
        f"gpus.{call}(); sys.stdin.read()"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdin is not None
    process = psutil.Process(int(server.stdout.readline()))
    wait_until(lambda: nvml.hangs == (call == "status"))
    server.kill()
    server.wait()
    server.stdin.close()
    server.stdout.close()
    wait_until(lambda: not is_alive(process))


def test_modules_in_the_folder_of_the_server_are_not_its(nvml: FakeNvml, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise SystemExit(1)")
    code = (
        "from msx_frontend.devices.nvidia.accelerator import Nvidia\n"
        f"gpus = Nvidia(env={nvml.environment!r}); print(len(gpus.detect())); gpus.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


def test_an_answer_that_is_too_long(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    process = NvmlProcess(str(nvml.folder), 60)
    monkeypatch.setattr("msx_frontend.devices.nvidia.process.MOST_LINE", 10)
    with pytest.raises(UnreadableError, match="the process that reads NVIDIA's GPUs ended with code 0"):
        process.ask("inventory", Inventory)
    process.close()
