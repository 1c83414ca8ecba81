"""`MAR-INF/MANIFEST.json`: TorchServe's manifest, with the size and the digest of every file."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec

from msx_core.json_text import json_text
from msx_core.names import MODEL_NAME, MOST_CHARACTERS

MANIFEST_PATH = "MAR-INF/MANIFEST.json"
DEFAULT_VERSION = "1.0"
CHOSEN_BY_SERVER = "auto"

Name = Annotated[str, msgspec.Meta(pattern=rf"^{MODEL_NAME.pattern}\Z", max_length=MOST_CHARACTERS)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Size = Annotated[int, msgspec.Meta(ge=0)]


class ManifestError(ValueError):
    """The manifest cannot be used; the message names the key, its value and what was expected."""


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the archive: its size in bytes and the lower-case hex SHA-256 of its content."""

    size: _Size
    sha256: _Sha256


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The `model` section. Paths are relative to the archive's root; `serialized_file` may hold `{rank}`.

    Without a name or a handler, the registration or the server's `default_service_handler` must give them.
    """

    model_name: Name | None = None
    handler: str | None = None
    serialized_file: str | None = None
    model_file: str | None = None
    model_version: Text = DEFAULT_VERSION
    extensions: str | list[str] | None = None
    requirements_file: str | None = None
    config_file: str | None = None
    source_vocab: str | None = None
    engine: str | None = None
    """CHOSEN_BY_SERVER in a folder that was made of a model in Hugging Face's layout: nobody has packed that for one
    handler."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An archive's manifest. `files` is empty in archives that torch-model-archiver made."""

    created_on: str | None = None
    runtime: str = "python"
    model: ModelEntry
    archiver_version: str | None = None
    files: dict[str, FileEntry] = {}

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Decode a manifest; unknown keys are ignored. Raises ManifestError."""
        return parse_manifest(data)[0]

    def to_json(self) -> bytes:
        """The manifest as the indented JSON that archives carry."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2) + b"\n"

    def to_dict(self) -> dict[str, Any]:
        """The manifest with TorchServe's keys, without empty ones: a handler's `context.manifest`."""
        return manifest_tree(self)


def parse_manifest(data: bytes) -> tuple[Manifest, list[str]]:
    """Decodes a manifest; returns it with one sentence for each key that was ignored. Raises ManifestError."""
    return check_manifest(data, Manifest, MANIFEST_PATH, {"model": ModelEntry})


_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def check_manifest(
    data: bytes, kind: type[_Struct], path: str, sections: dict[str, type[msgspec.Struct]]
) -> tuple[_Struct, list[str]]:
    """Decodes a manifest of the given kind; returns it with one sentence for each key that was ignored in it or its
    sections. Raises ManifestError, which names `path`."""
    tree = _decode(data, path)
    try:
        manifest = msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{path}{_explain(tree, str(error))}") from None
    warnings = _unknown(tree, kind, "")
    for name, section in sections.items():
        warnings += _unknown(tree[name], section, f"{name}.")
    return manifest, warnings


def manifest_tree(manifest: msgspec.Struct) -> dict[str, Any]:
    """The manifest as JSON has it, without keys whose value is null."""
    tree = _without_nulls(msgspec.to_builtins(manifest))
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in tree.items()}


def _without_nulls(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if value is not None}


def _decode(data: bytes, path: str) -> dict[str, Any]:
    try:
        tree = msgspec.json.decode(json_text(data))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(tree, dict):
        raise ManifestError(f"{path} must be a JSON object, got {_shown(tree)}.")
    return tree


def _unknown(tree: dict[str, Any], struct: type[msgspec.Struct], prefix: str) -> list[str]:
    known = struct.__struct_encode_fields__
    return [f"Unknown key '{prefix}{key}' in the manifest is ignored." for key in tree if key not in known]


def _explain(tree: dict[str, Any], message: str) -> str:
    """Adds the value to msgspec's message, which has the expectation and the place: `Expected … - at
    `$.model.modelName``."""
    problem, _, path = message.partition(" - at `$")
    key = path.rstrip("`").removeprefix(".")
    missing = re.fullmatch(r"Object missing required field `(\w+)`", problem)
    if missing:
        full = f"{key}.{missing[1]}".lstrip(".")
        return f" has no '{full}', which is required."
    what = problem[:1].lower() + problem[1:]
    return f": '{key}' is {_shown(_value_at(tree, key))}: {what}."


def _value_at(tree: Any, key: str) -> Any:
    """The value at a path such as `model.modelName`. msgspec writes `[...]` for any key of a mapping."""
    for part in re.findall(r"[^.\[\]]+|\[\.\.\.\]", key):
        if part == "[...]" or not isinstance(tree, dict):
            return tree
        tree = tree.get(part)
    return tree


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "…"
