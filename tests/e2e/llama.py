"""Archives of examples/llama for the engine."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
DATA = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def pack_llama(store: Path, name: str, config: str, data: Path = EXAMPLE, weights: Path = EXAMPLE, *more: Path) -> Path:
    """`config`: the text of its model-config.yaml. `data`: the folder of the small files; `weights`: that of the
    weights; `more`: further files, and folders whose content is packed."""
    config_file = store / f"{name}.yaml"
    config_file.write_text(config)
    return pack(
        PackOptions(
            model_name=name,
            version="1.0",
            handler="text_generation",
            serialized_file=str(weights / "model.safetensors"),
            config_file=str(config_file),
            extra_files=",".join(map(str, [*(data / file for file in DATA), *more])),
            export_path=store,
        )
    )


def shallow(folder: Path, layers: int) -> Path:
    """The example's first layers, in a folder: graphs of a network that need not make sense are compiled sooner."""
    from safetensors.numpy import load_file, save_file

    folder.mkdir()
    for file in DATA:
        shutil.copy(EXAMPLE / file, folder)
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    places = [f"model.layers.{layer}." for layer in range(layers, 4)]
    tensors = load_file(EXAMPLE / "model.safetensors").items()
    save_file({name: it for name, it in tensors if not name.startswith(tuple(places))}, folder / "model.safetensors")
    return folder


def few_graphs(config: str) -> str:
    """Short prompts, and one width of a step: nine processes compile on two cores."""
    return re.sub("slotBuckets: .*", "slotBuckets: [8]", re.sub("prefillBuckets: .*", "prefillBuckets: [64]", config))
