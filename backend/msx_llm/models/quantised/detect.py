"""How the weights of a folder are quantised: by `quantization_config` of config.json, or by ModelSlim's description."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msx_llm.models.quantised import awq, compressed, gguf, gptq, modelslim
from msx_llm.models.quantised.scheme import Quantisation
from msx_sdk.errors import HandlerLoadError

METHODS: Mapping[str, Callable[[Mapping[str, Any]], Quantisation]] = {
    "awq": awq.configure,
    "gptq": gptq.configure,
    "compressed-tensors": compressed.configure,
    "gguf": gguf.configure,
}


def quantisation_of(folder: Path, given: Mapping[str, Any] | None) -> Quantisation | None:
    """None: the weights are numbers. Raises HandlerLoadError for what cannot be read."""
    if (description := modelslim.description_of(folder)) is not None:
        return modelslim.configure(description)
    configure = METHODS.get((given or {}).get("quant_method", ""))
    return None if configure is None or given is None else configure(given)


def weights_of(folder: Path) -> Path:
    """The folder, or the file or index that ModelSlim gave a name of its own. Raises HandlerLoadError."""
    if any(folder.glob("model.safetensors*")) or modelslim.description_of(folder) is None:
        return folder
    found = sorted(folder.glob(modelslim.INDICES)) or sorted(folder.glob(modelslim.WEIGHTS))
    if len(found) != 1:
        raise HandlerLoadError(
            f"there are {len(found)} files {modelslim.WEIGHTS}; beside {modelslim.DESCRIPTIONS} there is one file of "
            "weights, or an index of several"
        )
    return found[0]
