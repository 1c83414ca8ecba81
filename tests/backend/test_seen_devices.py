"""A worker warns where its torch sees other GPUs than the server gave it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from msx_backend.seen_devices import SeenDevices
from msx_core.torch_devices import TorchDevices
from tests.backend.fake_torch import NONE_GIVEN, ONE_GIVEN, VISIBLE, FakeCuda, install

SIMULATED = structs.replace(ONE_GIVEN, simulated=True)


def compared(kind: TorchDevices, monkeypatch: pytest.MonkeyPatch, *, given: str | None, now: str | None) -> None:
    """Compares after the handler has set the variable to `now`."""
    _set(monkeypatch, given)
    seen = SeenDevices([kind])
    _set(monkeypatch, now)
    seen.compare()


def _set(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv(VISIBLE, raising=False)
    else:
        monkeypatch.setenv(VISIBLE, value)


@pytest.mark.parametrize(
    ("kind", "cuda", "visible"),
    [
        (ONE_GIVEN, FakeCuda(1), "GPU-a"),
        (ONE_GIVEN, FakeCuda(1, initialized=False), "GPU-a"),
        (NONE_GIVEN, FakeCuda(0, available=False, initialized=False), None),
        (SIMULATED, FakeCuda(0, available=False, initialized=False), "0"),
        (ONE_GIVEN, SimpleNamespace(), "GPU-a"),
    ],
    ids=["in use", "not in use", "no GPU", "simulated", "another torch"],
)
def test_nothing_where_it_sees_what_it_was_given(
    kind: TorchDevices,
    cuda: Any,
    visible: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    install(monkeypatch, cuda)
    compared(kind, monkeypatch, given=visible, now=visible)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("built_for", "remedy"),
    [
        ("13.0", "it was built for cuda 13.0, which the driver may be too old for: install a newer driver, or a torch"),
        (None, "it was built without cuda: install a torch with it where the workers run"),
    ],
)
def test_it_does_not_see_its_gpu(
    built_for: str | None, remedy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, FakeCuda(0, available=False, initialized=False), built_for)
    compared(ONE_GIVEN, monkeypatch, given="GPU-a", now="GPU-a")
    (message,) = caplog.messages
    assert message.startswith(
        "torch 2.11.0 does not see the 1 GPU that the server gave this worker (CUDA_VISIBLE_DEVICES=GPU-a), so that "
        f"the model computes on the CPU; {remedy}"
    )
    assert "deviceType: cpu" in message


def test_it_sees_gpus_that_the_server_does_not_use(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, FakeCuda(2, initialized=False))
    compared(NONE_GIVEN, monkeypatch, given=None, now=None)
    (message,) = caplog.messages
    assert message.startswith("torch sees 2 GPUs that the server did not give this worker")
    assert "an empty CUDA_VISIBLE_DEVICES" in message


@pytest.mark.parametrize(("kind", "given"), [(ONE_GIVEN, "GPU-a"), (NONE_GIVEN, ""), (NONE_GIVEN, None)])
def test_the_handler_has_changed_the_variable(
    kind: TorchDevices, given: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, FakeCuda(1))
    compared(kind, monkeypatch, given=given, now="1")
    (message,) = caplog.messages
    shown = "unset" if given is None else repr(given)
    assert message.startswith(f"the handler has changed CUDA_VISIBLE_DEVICES from {shown} to '1'")
    assert "deviceIds" in message


def test_a_worker_whose_gpus_are_hidden_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking torch takes time, and may start the driver in the worker."""
    install(monkeypatch, cuda := FakeCuda(0))
    compared(NONE_GIVEN, monkeypatch, given="", now="")
    assert cuda.asked == []


def test_torch_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    compared(ONE_GIVEN, monkeypatch, given="GPU-a", now="GPU-a")
    assert caplog.messages == []
    assert "torch" not in sys.modules
