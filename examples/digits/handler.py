"""Digits on any paper: dark on light or light on dark, anywhere in the picture. A request is a PNG or a JPEG."""

import io
import json
import warnings
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from msx_sdk import Context, Handler, InvalidInput
from msx_sdk.mindspore import Network, load_network, setup

SIZE, MARGIN = 8, 1
"""Pixels of the network's input, and of the empty border at its left and right."""
PIXELS = 16 << 20
"""Of a picture, at most: a small file may hold a very large one."""
Pixels = np.ndarray[Any, np.dtype[np.float32]]


class DigitHandler(Handler):
    packed_with = ("--serialized-file", "index_to_name.json")
    network: Network

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        setup(context)
        self.network = load_network(context)
        self.names = list(json.loads((context.model_dir / "index_to_name.json").read_text()).values())

    def preprocess(self, data: list[dict[str, Any]]) -> list[Any]:
        """A picture that cannot be read becomes an error, and fails alone."""
        return [read(row.get("body", row.get("data"))) for row in data]

    def inference(self, inputs: list[Any]) -> list[Any]:
        pictures = [it for it in inputs if not isinstance(it, InvalidInput)]
        rows = iter(self.network([np.stack(pictures)[:, None]])[0] if pictures else ())
        return [it if isinstance(it, InvalidInput) else next(rows) for it in inputs]

    def postprocess(self, outputs: list[Any]) -> list[Any]:
        """→ label to probability, the most probable first"""
        return [it if isinstance(it, InvalidInput) else self.answer(it) for it in outputs]

    def answer(self, logits: Pixels) -> dict[str, float]:
        weights = np.exp(logits - logits.max())
        best = weights.argsort()[::-1][:3]
        return {self.names[place]: round(float(weights[place] / weights.sum()), 4) for place in best}


def read(body: Any) -> Pixels | InvalidInput:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit here is lower
            picture = Image.open(io.BytesIO(body), formats=["PNG", "JPEG"])
        if picture.width * picture.height > PIXELS:
            return InvalidInput(f"body: {picture.width} × {picture.height} pixels are more than {PIXELS}")
        gray = np.asarray(picture.convert("L"), np.float32) / 255
    except Image.DecompressionBombError:
        return InvalidInput(f"body: the picture has more than {PIXELS} pixels")
    except (UnidentifiedImageError, TypeError):
        return InvalidInput("body: expected a picture, a PNG or a JPEG")
    except (OSError, SyntaxError, ValueError) as error:
        return InvalidInput(f"body: the picture is damaged: {error}")
    return fitted(gray)


def fitted(gray: Pixels) -> Pixels | InvalidInput:
    """Light on dark, cut to the ink, as wide and high as the digits that the network was trained with."""
    edge = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    ink = np.abs(gray - np.median(edge))
    rows, columns = (np.flatnonzero(ink.max(axis) > 0.3) for axis in (1, 0))
    if not len(rows):
        return InvalidInput("body: the picture has one colour only")
    cut = Image.fromarray(ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    width = min(max(round(SIZE * cut.width / cut.height), 1), SIZE - 2 * MARGIN)
    left = (SIZE - width) // 2
    page = np.zeros((SIZE, SIZE), np.float32)
    page[:, left : left + width] = np.asarray(cut.resize((width, SIZE), Image.Resampling.BOX))
    return np.clip(page, 0, 1)
