"""TorchServe's section `handler:` of a model for vLLM, as settings of MSX's handler."""

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from msx_core.config.vllm_section import DECIDED
from msx_core.values import near_miss, show
from msx_sdk import HandlerLoadError

SECTION, ENGINE = "handler", "vllm_engine_config"
READ = ("model", "served_model_name")
"""Members of the engine's section that are read here, or by the server."""
MOST_TEMPLATE = 1 << 20
"""Bytes of a file with a chat template."""

log = logging.getLogger(__name__)


def handler_section(config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """`handler:` of a whole model-config.yaml. Raises HandlerLoadError."""
    return _mapping((config or {}).get(SECTION), SECTION)


def engine_section(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """`vllm_engine_config:` of `handler:`. Raises HandlerLoadError."""
    return _mapping(section.get(ENGINE), f"{SECTION}.{ENGINE}")


def model_folder(section: Mapping[str, Any], model_dir: Path) -> Path:
    """The folder of `vllm_engine_config.model`, else of `model_path`, inside the model's. Raises HandlerLoadError."""
    own = engine_section(section).get("model")
    key, given = (f"{SECTION}.{ENGINE}.model", own) if own else (f"{SECTION}.model_path", section.get("model_path"))
    if not given:
        raise HandlerLoadError(
            f"{SECTION}.model_path: is needed: give the folder with config.json, relative to the model's folder"
        )
    folder = _inside(key, given, model_dir)
    if not folder.is_dir():
        raise HandlerLoadError(
            f"{key}: {show(given)} is no folder of this model, and a worker fetches nothing: put the model's files "
            "there, or serve a model of a hub by python -m ts.llm_launcher --model_id or the URL hf://org/name"
        )
    return folder


def engine_arguments(section: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Read `vllm_engine_config:`; `known`: the names of vLLM's engine. A WARNING for each member without effect:
    TorchServe passes over names that vLLM does not have. Raises HandlerLoadError."""
    given = engine_section(section)
    arguments = {}
    for name, value in given.items():
        if reason := _without_effect(str(name), known):
            log.warning("%s.%s.%s: has no effect: %s", SECTION, ENGINE, name, reason)
        elif name not in READ and value is not None:
            arguments[name] = value
    return arguments


def adapter_folders(section: Mapping[str, Any], model_dir: Path) -> dict[str, Path]:
    """The folders of `adapters:`, by their names. Raises HandlerLoadError."""
    given = _mapping(section.get("adapters"), f"{SECTION}.adapters")
    return {str(name): _inside(f"{SECTION}.adapters.{name}", folder, model_dir) for name, folder in given.items()}


def chat_template(section: Mapping[str, Any], model_dir: Path) -> str | None:
    """The source of `chat_template:`, which is a file of the model or the template itself, as vLLM takes both. Raises
    HandlerLoadError."""
    given, key = section.get("chat_template"), f"{SECTION}.chat_template"
    if given is None:
        return None
    if isinstance(given, str) and any(mark in given for mark in "{}\n"):
        return given
    file = _inside(key, given, model_dir)
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_TEMPLATE + 1)
        if len(data) > MOST_TEMPLATE:
            raise HandlerLoadError(f"{key}: {given} has more than {MOST_TEMPLATE >> 20} MiB: give a shorter template")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise HandlerLoadError(
            f"{key}: {show(given)} is neither a template nor a text file of the model: {error}"
        ) from None


def _without_effect(name: str, known: Collection[str]) -> str:
    """The reason; "" where the name counts."""
    if name in READ:
        return ""
    if reason := DECIDED.get(name):
        return reason
    if name in known:
        return ""
    meant = near_miss(name, known)
    return f"vLLM's engine has no such argument{f'; did you mean {meant}?' if meant else ''}"


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise HandlerLoadError(f"{key}: {show(value)} is not a mapping")
    return value


def _inside(key: str, given: Any, model_dir: Path) -> Path:
    """A path below the model's folder, in which links may lead elsewhere: archives have none, and those of a folder
    are its owner's. Raises HandlerLoadError."""
    if not isinstance(given, str):
        raise HandlerLoadError(f"{key}: {show(given)} is not a path")
    path = Path(given)
    if path.is_absolute() or ".." in path.parts:
        raise HandlerLoadError(
            f"{key}: {show(given)} is outside of the model's folder: give a path inside, where a link may stand for it"
        )
    return model_dir / path
