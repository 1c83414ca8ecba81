"""Small models of several families, with the shapes of the goldens' ones and a tokenizer that can write any text."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.checkpoint import VOCAB, write_bfloat16, write_tokenizer

GOLDENS = Path(__file__).parents[1] / "goldens" / "llm"
CONTEXT = 512
PER_WORD = ("model.embed_tokens.weight", "lm_head.weight")
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool['function']['name'] }}\n{% endfor %}"
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
)


def pack_family(store: Path, family: str, config: str) -> None:
    """Packs the model that has the family's name; `config` is its model-config.yaml."""
    folder = store.parent / family
    folder.mkdir()
    _write(family, folder)
    pack_folder(store, family, folder, config)


def pack_folder(store: Path, name: str, folder: Path, config: str, serialized_file: str | None = None) -> None:
    yaml = store.parent / f"{name}.yaml"
    yaml.write_text(config)
    options = PackOptions(
        model_name=name,
        version="1.0",
        handler="text_generation",
        serialized_file=serialized_file,
        config_file=str(yaml),
        extra_files=str(folder),
        export_path=store,
    )
    pack(options)


def _write(family: str, folder: Path) -> None:
    config = json.loads((GOLDENS / family / "config.json").read_text())
    config |= {"vocab_size": VOCAB, "max_position_embeddings": CONTEXT, "dtype": "bfloat16", "eos_token_id": 257}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"}))
    write_tokenizer(folder)
    shapes = {name: _shape(name, one["shape"]) for name, one in _header(GOLDENS / family / "model.safetensors").items()}
    write_bfloat16(folder / "model.safetensors", shapes, seed=0)


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return header


def _shape(name: str, golden: list[int]) -> tuple[int, ...]:
    return (VOCAB, *golden[1:]) if name in PER_WORD else tuple(golden)
