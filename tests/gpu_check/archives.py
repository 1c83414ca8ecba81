"""Archives of TorchServe's kinds, whose models have random weights that are made on the spot."""

from __future__ import annotations

import io
import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import SERVICES

FOLDER = SERVICES / "gpu"
PLACES = ["cpu", *(f"cuda:{number}" for number in range(8))]
"""The classes of the image and text models: where they have computed."""
WORDS = {"<unk>": 0, "one": 1, "bag": 2, "of": 3, "a": 4, "few": 5, "words": 6}


def picture(folder: Path) -> Path:
    """For TorchServe's image_classifier."""
    return _packed(folder, "picture", "image_classifier", "picture_net", "PictureNet", _names(folder))


def words(folder: Path) -> Path:
    """For TorchServe's text_classifier."""
    import torch

    torch.save(WORDS, folder / "source_vocab.pt")
    extra = [*_names(folder), folder / "source_vocab.pt"]
    return _packed(folder, "words", "text_classifier", "words_net", "WordsNet", extra)


def rows(folder: Path, name: str, config: str = "", megabytes: int = 1) -> Path:
    """A handler of one's own that holds so much memory of its device."""
    text = f"{config}handler: {{megabytes: {megabytes}}}\n"
    return _packed(folder, name, str(FOLDER / "rows.py"), "rows_net", "RowsNet", config=text)


def sums(folder: Path) -> Path:
    """A group of two ranks, started by the keys of `torchrun`."""
    config = folder / "sums.yaml"
    config.write_text("parallelType: tp\ntorchrun: {nproc-per-node: 2}\n")
    handler = str(FOLDER / "sum_of_ranks.py")
    return pack(PackOptions(model_name="sums", handler=handler, config_file=str(config), export_path=folder / "store"))


def model(file: str, name: str) -> Any:
    """The same random weights at each call."""
    import torch

    torch.manual_seed(7)
    return runpy.run_path(str(FOLDER / f"{file}.py"))[name]().eval()


def _packed(
    folder: Path, name: str, handler: str, file: str, network: str, extra: Sequence[Path] = (), config: str = ""
) -> Path:
    import torch

    weights, yaml = folder / f"{name}.pth", folder / f"{name}.yaml"
    torch.save(model(file, network).state_dict(), weights)
    yaml.write_text(config)
    options = PackOptions(
        model_name=name,
        handler=handler,
        model_file=str(FOLDER / f"{file}.py"),
        serialized_file=str(weights),
        extra_files=",".join(map(str, extra)) or None,
        config_file=str(yaml) if config else None,
        export_path=folder / "store",
    )
    return pack(options)


def _names(folder: Path) -> list[Path]:
    file = folder / "index_to_name.json"
    file.write_text(json.dumps(dict(enumerate(PLACES))))
    return [file]


def png() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (300, 280), (200, 40, 90)).save(buffer, "PNG")
    return buffer.getvalue()
