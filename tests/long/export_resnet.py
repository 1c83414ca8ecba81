"""`python export_resnet.py FOLDER`, in an environment with MindCV: a ResNet as MindIR, pictures, and the network's own
answers."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # before MindSpore, whose convolutions are 50 times slower without it

import mindspore as ms
import numpy as np
from mindcv.models import create_model
from PIL import Image

BATCH, SIDE, PICTURES = 4, 224, 6
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def main(folder: Path) -> None:
    ms.set_seed(1)
    network = create_model("resnet18", num_classes=1000)
    network.set_train(False)
    random = np.random.default_rng(0)
    answers = []
    for number in range(PICTURES):
        colours = random.integers(0, 256, (7, 7, 3), np.uint8)
        picture = Image.fromarray(colours).resize((300 + number, 260), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        picture.save(file, "PNG")
        (folder / f"picture{number}.png").write_bytes(file.getvalue())
        answers.append(network(ms.Tensor(decoded(file.getvalue())[None])).asnumpy()[0])
    np.save(folder / "answers.npy", np.stack(answers))
    example = ms.Tensor(np.zeros((BATCH, 3, SIDE, SIDE), np.float32))
    ms.export(network, example, file_name=str(folder / "resnet"), file_format="MINDIR")


def decoded(data: bytes) -> Any:
    """As the servable of the test does it."""
    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((SIDE, SIDE))
    return ((np.asarray(picture, np.float32) / 255 - MEAN) / DEVIATION).transpose(2, 0, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
