"""LoRA adapters as PEFT saves them: those of the archive, and what is read of one that is loaded later."""

import json
from pathlib import Path

from msx_core.config import AdapterOptions
from msx_core.generation.adapter_stamp import file_stamp
from msx_core.json_text import json_text
from msx_core.values import show
from msx_sdk.errors import HandlerLoadError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MOST = 256
"""Adapters of an archive."""
MOST_CONFIG = 1 << 20
"""Bytes."""


def packed_adapters(model: Path, options: AdapterOptions | None) -> dict[str, Path]:
    """The folders of the archive's adapters by their names. Raises HandlerLoadError."""
    folder = (options or AdapterOptions()).folder
    place = (model / folder).resolve()
    if not place.is_relative_to(model.resolve()):
        raise HandlerLoadError(f"adapters.folder: {folder} is outside of the archive; pack it")
    found = {path.parent.name: path.parent for path in sorted(place.glob(f"*/{CONFIG}"))}
    if len(found) > MOST:
        raise HandlerLoadError(f"adapters.folder: {len(found)} adapters are more than {MOST}; divide them")
    return found


def rank_of(name: str, folder: Path) -> int:
    """The adapter's `r`. Raises HandlerLoadError."""
    try:
        with (folder / CONFIG).open("rb") as file:
            members = json.loads(json_text(file.read(MOST_CONFIG)))
    except OSError as error:
        raise HandlerLoadError(f"adapter {name}: {CONFIG} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise HandlerLoadError(f"adapter {name}: {CONFIG} cannot be read: {error}") from None
    rank = members.get("r") if isinstance(members, dict) else None
    if type(rank) is not int or rank < 1:
        raise HandlerLoadError(f"adapter {name}: r: {show(rank)} of {CONFIG} is not an integer of 1 or more")
    return rank


def stamp_of(name: str, folder: Path) -> str:
    """Differs when one of the files was written, or replaced. Raises HandlerLoadError for one that is missing."""
    return "-".join(file_stamp(name, folder / file) for file in (CONFIG, WEIGHTS))


def check_rank(name: str, rank: int, most: int) -> None:
    """Raises HandlerLoadError."""
    if rank > most:
        raise HandlerLoadError(
            f"adapter {name}: r is {rank}, above vllm.max_lora_rank ({most}), which is fixed when a worker starts; "
            "raise it in model-config.yaml"
        )
