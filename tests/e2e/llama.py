"""Archives of examples/llama for the engine."""

from __future__ import annotations

import re
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


def few_graphs(config: str) -> str:
    """Short prompts, and one width of a step: nine processes compile on two cores."""
    return re.sub("slotBuckets: .*", "slotBuckets: [8]", re.sub("prefillBuckets: .*", "prefillBuckets: [64]", config))
