"""Digits on any paper: dark on light or light on dark, anywhere in the picture. A request is a PNG or a JPEG."""

import json
from typing import Any

import numpy as np
from PIL import Image

from msx_sdk import Context, Handler, InvalidInput
from msx_sdk.images import ImageDecoder
from msx_sdk.mindspore import Network, load_network, setup

SIZE, MARGIN = 8, 1
"""Pixels of the network's input, and of the empty border at its left and right."""
PIXELS = 16 << 20
"""Most pixels of a picture: a small file may hold a very large one."""
Pixels = np.ndarray[Any, np.dtype[np.float32]]


class DigitHandler(Handler):
    packed_with = ("--serialized-file", "index_to_name.json")
    network: Network

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        setup(context)
        self.network = load_network(context)
        self.images = ImageDecoder.of(context, 1, max_pixels=PIXELS, formats=["PNG", "JPEG"])
        self.names = list(json.loads((context.model_dir / "index_to_name.json").read_text()).values())

    def preprocess(self, data: list[dict[str, Any]]) -> list[Any]:
        """A picture that cannot be read becomes an error, and fails alone."""
        return [self.read(row.get("body", row.get("data"))) for row in data]

    def read(self, body: Any) -> Pixels | InvalidInput:
        try:
            return fitted(self.images.decode(body).array()[..., 0] / 255)
        except InvalidInput as error:
            return InvalidInput(f"body: {error.message}")

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
