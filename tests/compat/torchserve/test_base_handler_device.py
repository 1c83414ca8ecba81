"""The device of TorchServe's BaseHandler, with a torch that sees a GPU."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.context import Context, ModelInfo
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler


class Empty(BaseHandler):
    def _load(self, model_dir: str) -> None: ...


@pytest.mark.parametrize(("given", "device"), [(None, "cpu"), (1, "cuda:1")])
def test_a_gpu_is_used_only_by_the_number_that_the_server_gave(
    given: int | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives none on a machine without NPUs."""
    torch: Any = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True), device=str)
    monkeypatch.setitem(sys.modules, "torch", torch)
    handler = Empty()
    handler.initialize(Context(ModelInfo("m", device_id=given)))
    assert handler.device == device
