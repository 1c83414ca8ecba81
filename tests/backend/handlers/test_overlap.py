"""Steps of the built-in handlers side by side: MindSpore is called on the thread of `inference` alone."""

import base64
import io
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_backend.handlers import _batching, _joined
from msx_core.config.keys import ModelKeys
from msx_core.overlap import sequential_reason
from msx_core.resolve import resolve_object
from msx_sdk.mindspore import TensorParallelHandler
from msx_sdk.testing import LocalModel
from tests.backend.handlers.conftest import Serve
from tests.backend.handlers.test_image_classifier import folder, picture
from tests.backend.handlers.test_mindir import ROW, kserve, npy

__all__ = ["folder"]

ms = pytest.importorskip("mindspore")
pytestmark = pytest.mark.mindspore
MINDSPORE = str(Path(ms.__file__).parent)
CASES = ["mindir", "checkpoint", "images"]


@pytest.fixture
def model(request: pytest.FixtureRequest, shared: Serve, folder: Path) -> LocalModel:
    if request.param == "images":
        return shared("image_classifier", "brightness.mindir", {}, folder)
    if request.param == "mindir":
        return shared("mindir", "single.mindir")
    inputs = [{"name": "x", "shape": [-1, 3]}]
    return shared("checkpoint", "affine.ckpt", {"model": {"class": "Affine", "inputs": inputs}}, modelFile="net.py")


def batch(model: LocalModel) -> list[Any]:
    """Requests of each form, one of them wrong."""
    if hasattr(model.handler.owner, "reader"):
        finished = {"inputs": [{"name": "i", "shape": [1, 1, 2, 2], "datatype": "FP32", "data": [1, 0, 0, 0]}]}
        return [
            picture(1),
            b"no image",
            {"instances": [base64.b64encode(picture(0)).decode(), [[[0, 1], [0, 0]]]]},
            finished,
            picture(2),
        ]
    return [[ROW], ROW, {"instances": [ROW]}, {"x": "?"}, npy([ROW]), kserve(), {"x": [ROW] * 3}]


class Elsewhere:
    """Runs a step on a thread of its own, and keeps the names of MindSpore's functions that it calls there."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.called: set[str] = set()
        self.given: list[Any] = []

    def wrap(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(data: Any) -> Any:
            self.given.append(data)
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(copy_context().run, self._watched, step, data).result()

        return call

    def _watched(self, step: Callable[[Any], Any], data: Any) -> Any:
        self.threads.add(threading.get_ident())
        sys.setprofile(self._saw)
        try:
            return step(data)
        finally:
            sys.setprofile(None)

    def _saw(self, frame: Any, event: str, called: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(MINDSPORE):
            self.called.add(frame.f_code.co_qualname)
        elif event == "c_call" and str(getattr(called, "__module__", "")).startswith("mindspore"):
            self.called.add(called.__qualname__)


@pytest.fixture
def elsewhere(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    seen, handler = Elsewhere(), model.handler.owner
    for name in ("preprocess", "postprocess"):
        monkeypatch.setattr(handler, name, seen.wrap(getattr(handler, name)))
    yield seen
    assert seen.threads.isdisjoint([threading.get_ident()])


@pytest.mark.parametrize("model", CASES, indirect=True)
def test_preprocess_and_postprocess_do_not_call_mindspore(model: LocalModel, elsewhere: Elsewhere) -> None:
    statuses = [reply.status for reply in model.predict(batch(model))]
    assert statuses.count(400) == 1
    assert statuses.count(200) > 3
    assert not elsewhere.called


def test_a_call_of_mindspore_would_have_been_seen() -> None:
    seen = Elsewhere()
    seen.wrap(lambda data: ms.Tensor(data).asnumpy())([1.0])
    assert any("asnumpy" in name for name in seen.called)


def arrays_in(value: Any) -> Iterator[Any]:
    """The leaves of what `postprocess` is given."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    else:
        yield value


@pytest.mark.parametrize("model", CASES, indirect=True)
def test_postprocess_is_given_numpy_arrays(model: LocalModel, elsewhere: Elsewhere) -> None:
    model.predict(batch(model))
    leaves = list(arrays_in(elsewhere.given[-1]))
    assert any(isinstance(leaf, np.ndarray) for leaf in leaves)
    assert not any(type(leaf).__module__.startswith("mindspore") for leaf in leaves)


@pytest.mark.parametrize("model", CASES, indirect=True)
def test_inference_joins_no_rows(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """`preprocess` has put those of one shape into one array, without the wrong request's."""
    handler = model.handler.owner
    inference = handler.inference
    with monkeypatch.context() as patch:
        patch.setattr(handler, "inference", lambda inputs: inference(list(inputs)))
        expected = [reply.chunks for reply in model.predict(batch(model))]
    copied: list[Any] = []
    monkeypatch.setattr(_batching, "concatenated", copied.append)
    assert [reply.chunks for reply in model.predict(batch(model))] == expected
    assert not copied


@pytest.mark.parametrize("model", ["images"], indirect=True)
def test_images_are_copied_once(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand row after row, as MindSpore takes them: nothing is made contiguous in `inference`."""
    given: list[Any] = []

    def keep(network: Any, arrays: list[Any]) -> list[Any]:
        given.extend(arrays)
        return arrays

    monkeypatch.setattr(type(model.handler.owner.network), "__call__", keep)
    model.predict([picture(1), b"no image", picture(2)])
    assert [array.shape for array in given] == [(2, 1, 2, 2)]
    assert given[0].flags.c_contiguous


@pytest.mark.parametrize("model", CASES, indirect=True)
def test_built_in_handlers_overlap(model: LocalModel) -> None:
    assert sequential_reason(model.handler, ModelKeys()) == ""


def test_a_divided_network_overlaps_on_one_rank() -> None:
    class Divided(TensorParallelHandler):
        def build(self, parallel: Any) -> Any: ...

    divided = resolve_object(Divided())
    assert sequential_reason(divided, ModelKeys()) == ""
    assert sequential_reason(divided, ModelKeys(), world_size=2) == "the ranks of its group make each call together"


def test_one_request_is_not_copied(shared: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_joined, "concatenated", None)
    file = io.BytesIO()
    np.save(file, np.ones((2, 3), np.float32))
    (reply,) = shared("mindir", "single.mindir").predict([file.getvalue()], {"accept": "application/json"})
    assert reply.json() == [[2, 2, 2], [2, 2, 2]]
