"""The small files around a tokenizer, in Hugging Face's layout."""

import json
from pathlib import Path
from typing import Any

from msx_core.errors import HandlerLoadError
from msx_core.json_text import json_text

TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_object(folder: Path, name: str) -> dict[str, Any]:
    """An optional JSON file; an empty object if it is missing. Raises HandlerLoadError if it is not an object."""
    try:
        value = json.loads(json_text((folder / name).read_bytes()))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise HandlerLoadError(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise HandlerLoadError(f"{name} is not a JSON object")
    return value


def tokenizer_config(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json, completed with the special tokens of special_tokens_map.json."""
    return {**read_object(folder, "special_tokens_map.json"), **read_object(folder, "tokenizer_config.json")}


def special_tokens(config: dict[str, Any]) -> dict[str, str]:
    """Special tokens by name: `bos_token` and so on. A token is a text, or an object with the text as `content`."""
    texts = {name: content(config.get(name)) for name in TOKEN_NAMES}
    return {name: text for name, text in texts.items() if text is not None}


def content(token: Any) -> str | None:
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def token_ids(value: Any) -> frozenset[int]:
    """The token ids in an `eos_token_id`: a number, a list of numbers, or null."""
    ids = value if isinstance(value, list) else [value]
    return frozenset(id for id in ids if isinstance(id, int) and not isinstance(id, bool))
