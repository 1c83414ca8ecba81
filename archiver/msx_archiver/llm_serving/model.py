"""The model of a configuration of llm-serving: files by their paths in an archive, and model-config.yaml."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from msx_archiver.errors import PackError
from msx_archiver.linked_checkpoint import checkpoint_files, handler_of
from msx_archiver.llm_serving.config import OPTION, LlmServing
from msx_archiver.llm_serving.graphs import graph_pair
from msx_archiver.servable import YAML
from msx_archiver.weights import with_variables
from msx_core.safe_yaml import read_yaml
from msx_core.values import ConfigError

MINDIR = "text_generation_mindir"
NAMES = ("llama2", "internlm")
"""Names of the one model in the paths of llm-serving's clients."""
TOKENIZER = "tokenizer.json"
GENERATION = "generation_config.json"
_BESIDE = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "config.json")


class ImportedModel(NamedTuple):
    """`files` are sources by their paths in the archive, `texts` the content of those that are made."""

    name: str
    handler: str
    files: dict[str, Path]
    texts: dict[str, str]


def imported_model(config: LlmServing, huggingface: Path | None = None) -> ImportedModel:
    """The pair of MindIR files, or the folder in Hugging Face's layout in their place. Raises PackError, OSError."""
    if huggingface is not None:
        return _checkpoint(config, huggingface)
    prefill, increment = graph_pair(config)
    files = dict(_tokenizer(config))
    for folder, file in (("prefill", prefill), ("increment", increment)):
        files |= with_variables(f"{folder}/{file.name}", file)
    graphs: dict[str, Any] = {"prefill": f"prefill/{prefill.name}", "increment": f"increment/{increment.name}"}
    if (pad := config.model_config.pad_token_id) is not None:
        graphs["padToken"] = pad
    settings = {**_settings(config), **_lengths(config), "textGeneration": graphs}
    texts = {YAML: _yaml(settings)}
    if (end := config.model_config.end_token) is not None:
        texts[GENERATION] = json.dumps({"eos_token_id": end})
    return ImportedModel(config.name, MINDIR, files, texts)


def _checkpoint(config: LlmServing, folder: Path) -> ImportedModel:
    handler, files = handler_of(folder), checkpoint_files(folder)
    try:
        own = read_yaml(files.pop(YAML)) if YAML in files else None
    except ConfigError as error:
        raise PackError(str(error)) from None
    settings = {**_settings(config), **(own if isinstance(own, dict) else {})}
    return ImportedModel(config.name, handler, files, {YAML: _yaml(settings)})


def _settings(config: LlmServing) -> dict[str, Any]:
    settings: dict[str, Any] = {"aliases": [name for name in NAMES if name != config.name]}
    first = config.serving_config.start_device_id
    if first is not None:
        settings["deviceIds"] = list(range(first, first + max(config.agents, 1)))
    return settings


def _lengths(config: LlmServing) -> dict[str, int]:
    model = config.model_config
    lengths = [max(model.seq_length)] if model.seq_length else []
    lengths += [model.max_generate_length] if model.max_generate_length is not None else []
    return {"maxTotalTokens": min(lengths)} if lengths else {}


def _tokenizer(config: LlmServing) -> Iterator[tuple[str, Path]]:
    """Raises PackError."""
    named = Path(config.tokenizer.vocab_file)
    folder = named if named.is_dir() else named.parent
    if not config.tokenizer.vocab_file or not (folder / TOKENIZER).is_file():
        raise PackError(
            f"{OPTION}: tokenizer.vocab_file: {folder / TOKENIZER} is not there, the only form that is read. Make it "
            f"of {named.name or 'the tokenizer'} by transformers: AutoTokenizer.from_pretrained(FOLDER).save_pretrained"
            "(FOLDER)."
        )
    yield from ((name, folder / name) for name in _BESIDE if (folder / name).is_file())


def _yaml(settings: dict[str, Any]) -> str:
    return yaml.safe_dump(settings, sort_keys=False)
