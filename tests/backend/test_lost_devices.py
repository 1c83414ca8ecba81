"""Which errors of a handler leave its process without its GPU, by a torch that only looks as if it had one."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from msx_backend import lost_devices
from msx_backend.lost_devices import LostDevices
from msx_protocol import Broken
from msx_sdk import PredictionError
from tests.backend.fake_torch import ASSERTED, ONE_GIVEN, AcceleratorError, FakeCuda, install
from tests.backend.parallel.ranks import Gone

FOREVER = 1000
REASON = (
    "no call of torch.cuda in its process succeeds after AcceleratorError: CUDA error: device-side assert triggered"
)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Messages to the server. The process ends by `Gone`."""

    def leave() -> None:
        raise Gone

    monkeypatch.setattr(lost_devices, "wait_for_the_server", leave)
    return []


def lost(told: list[Any], *, serving: bool = True) -> LostDevices:
    replies: Any = SimpleNamespace(send=told.append)
    made = LostDevices([ONE_GIVEN], replies)
    made.serving = serving
    return made


def broken_cuda(device: int = 0, failures: int = FOREVER, **options: Any) -> FakeCuda:
    cuda = FakeCuda(**options)
    cuda.failures[device] = failures
    return cuda


def test_an_error_that_every_later_call_repeats(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """With the first line of torch's text: the rest is advice for developers."""
    install(monkeypatch, broken_cuda())
    with pytest.raises(Gone):
        lost(told)(AcceleratorError(ASSERTED))
    assert told == [Broken(REASON)]


def test_the_error_may_be_the_cause_of_the_handlers_own(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    install(monkeypatch, broken_cuda())
    own: BaseException = PredictionError(500, "no answer")
    own.__context__ = RuntimeError("no picture")
    own.__context__.__cause__ = AcceleratorError(ASSERTED)
    with pytest.raises(Gone):
        lost(told)(own)
    assert told == [Broken(REASON)]


@pytest.mark.parametrize(
    ("error", "cuda"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), FakeCuda()),
        (AcceleratorError("CUDA error: invalid configuration argument"), broken_cuda(failures=1)),
        (AcceleratorError(ASSERTED), broken_cuda(initialized=False)),
        (ValueError("no luck"), broken_cuda()),
        (AcceleratorError(ASSERTED), broken_cuda(device=1, count=2)),
        (AcceleratorError(ASSERTED), SimpleNamespace()),
    ],
    ids=["out of memory", "told once", "never begun", "another error", "a GPU that it does not use", "another torch"],
)
def test_errors_that_leave_it_its_gpu(
    error: BaseException, cuda: Any, monkeypatch: pytest.MonkeyPatch, told: list[Any]
) -> None:
    install(monkeypatch, cuda)
    lost(told)(error)
    assert told == []


def test_each_gpu_that_holds_memory_of_it_is_asked(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """And no other: torch would begin to use it."""
    cuda = broken_cuda(device=2, count=4)
    cuda.reserved = {2: 1 << 20}
    install(monkeypatch, cuda)
    with pytest.raises(Gone):
        lost(told)(AcceleratorError(ASSERTED))
    assert [one for one in cuda.asked if isinstance(one, int)] == [0, 2, 2]


def test_while_it_loads_it_is_a_load_that_failed(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    install(monkeypatch, broken_cuda())
    lost(told, serving=False)(AcceleratorError(ASSERTED))
    assert told == []


def test_torch_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    lost(told)(AcceleratorError(ASSERTED))
    assert told == []
    assert "torch" not in sys.modules


def test_a_context_that_fails_at_any_question(monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    cuda = FakeCuda()
    monkeypatch.setattr(cuda, "current_device", lambda: cuda.synchronize(0))
    cuda.failures[0] = 1
    install(monkeypatch, cuda)
    with pytest.raises(Gone):
        lost(told)(AcceleratorError(ASSERTED))
    assert told == [Broken(REASON)]
