"""vLLM's `/version` and `/tokenizer_info`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from msx_core.errors import HandlerLoadError
from msx_core.service_errors import BadRequest, ModelNotFound
from msx_core.tokenizer_files import content, tokenizer_config
from msx_frontend import __version__
from msx_frontend.generation.directory import Directory
from msx_net.http.family import Reply
from msx_net.http.request import Request

TEMPLATE = "chat_template.jinja"
"""The file that newer checkpoints have their chat template in."""
FILES = ("tokenizer_config.json", "special_tokens_map.json", TEMPLATE)
MOST = 16 << 20
"""Bytes of one of them."""
OF_FILES = ("vocab_file", "merges_file")
"""Members that name files of another machine."""


class ServerAbout:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def version(self, request: Request) -> Reply:
        return Reply(msgspec.json.encode({"version": __version__}))

    async def tokenizer(self, request: Request) -> Reply:
        """The tokenizer's configuration as the model's folder has it. Raises ModelNotFound and BadRequest."""
        directory = self._directory.seen_by(request.call.limited_key)
        version = directory.find_for_tokens(request.query.get("model"))
        return Reply(await asyncio.to_thread(_described, version.source.name, version.source.model_dir))


def _described(model: str, folder: Path) -> bytes:
    for name in FILES:
        if (folder / name).is_file() and (size := (folder / name).stat().st_size) > MOST:
            raise BadRequest(f'{name} of model "{model}" has {size} bytes; at most {MOST} are shown.')
    try:
        found = tokenizer_config(folder)
    except HandlerLoadError as error:
        raise BadRequest(f'The tokenizer of model "{model}" is not described: {error}') from None
    if not found:
        raise ModelNotFound(f"{model}. Its folder has no {FILES[0]}")
    return msgspec.json.encode(_shown(found, folder / TEMPLATE))


def _shown(config: dict[str, Any], template: Path) -> dict[str, Any]:
    """Special tokens as their texts, and the chat template that a file of its own has."""
    shown = {name: _plain(value) for name, value in config.items() if name not in OF_FILES}
    shown.setdefault("tokenizer_class", "PreTrainedTokenizerFast")
    if "chat_template" not in shown and template.is_file():
        shown["chat_template"] = template.read_text(errors="replace")
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    text = content(value)
    return {name: _plain(one) for name, one in value.items()} if text is None else text
