"""The first and the last of three stages: an image becomes an array, the network's scores an answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from msx_sdk import Handler, InvalidInput
from msx_sdk.images import ImageDecoder

SIZE = 32
NAMES = ("dark", "red", "green", "blue", "bright")


class Decode(Handler):
    """Bytes of an image -> [3, SIZE, SIZE] float32 from 0 to 1."""

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.images = ImageDecoder.of(context, max_pixels=16 << 20)

    def inference(self, inputs: Any) -> Any:
        return [self.decoded(row["body"]) for row in inputs]

    def decoded(self, body: Any) -> Any:
        try:
            pixels = self.images.decode(body).array(lambda image: image.resize((SIZE, SIZE)))
        except InvalidInput as error:
            return InvalidInput(f"body: {error.message}")  # the others of the batch go on
        return pixels.transpose(2, 0, 1) / 255


class Encode(Handler):
    """Scores, one a name -> JSON."""

    def inference(self, inputs: Any) -> Any:
        return [self.answer(np.asarray(row["body"])) for row in inputs]

    def answer(self, scores: Any) -> dict[str, Any]:
        best = int(scores.argmax())
        return {"label": NAMES[best], "scores": {name: float(score) for name, score in zip(NAMES, scores, strict=True)}}
