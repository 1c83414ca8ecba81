"""Small torch models, and what goes into them. Where torch is not installed, modules that import this are skipped."""

from __future__ import annotations

import io
import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
SERVICES = Path(__file__).parent / "services" / "ts"
EXAMPLES = SERVICES / "examples"


def saved(value: Any) -> bytes:
    """Bytes that `torch.save` writes."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def scripted(model: Any) -> bytes:
    """TorchScript, which torch still reads, but calls deprecated."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(model), buffer)
    return buffer.getvalue()


def cnn() -> Any:
    """The model of tests/services/ts/cnn_model.py."""
    torch.manual_seed(7)
    return runpy.run_path(str(SERVICES / "cnn_model.py"))["SmallCNN"]().eval()


def example_model(file: str, name: str) -> dict[str, Any]:
    """Random weights of this class of a file of tests/services/ts/examples."""
    torch.manual_seed(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        state: dict[str, Any] = runpy.run_path(str(EXAMPLES / f"{file}.py"))[name]().state_dict()
    return state


class Colours(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Logits of red, green and blue: how much of each an image has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return x.mean(dim=(2, 3)) * 10


class Doubled(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return x * 2


def png(colour: Any, size: tuple[int, int] = (300, 280), mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def digit_image(seed: int) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (28, 28), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def digit_of(model: Any, image: bytes, mean: float = 0.0, std: float = 1.0) -> int:
    """Answer of the model itself."""
    pixels = (np.asarray(Image.open(io.BytesIO(image)), dtype=np.float32) / 255 - mean) / std
    with torch.inference_mode():
        return int(model(torch.from_numpy(pixels)[None, None]).argmax(1))
