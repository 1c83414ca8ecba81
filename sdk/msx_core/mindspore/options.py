"""Reads sections of the yaml, and finds files that the manifest names."""

from pathlib import Path
from typing import TypeVar

import msgspec

from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.validation import wrong_value

S = TypeVar("S", bound=msgspec.Struct)


def read_options(context: Context, section: str, schema: type[S]) -> S:
    """The section of model-config.yaml as `schema`; its defaults if the section is missing.

    Raises HandlerLoadError, which names the key and what was expected.
    """
    given = context.model_yaml_config.get(section)
    try:
        return msgspec.convert({} if given is None else given, schema)
    except msgspec.ValidationError as error:
        path, expected = wrong_value(error)
        key = f"{section}.{path}".rstrip(".")
        raise HandlerLoadError(f"model-config.yaml, {key}: {expected}") from None


def model_file(context: Context, key: str = "serializedFile") -> Path:
    """The file that the manifest names under `key`; `{rank}` in its name is this rank's number.

    Raises HandlerLoadError when the archive was packed without it.
    """
    name = context.manifest.get("model", {}).get(key)
    option = {"serializedFile": "--serialized-file", "modelFile": "--model-file"}.get(key, key)
    if not name:
        raise HandlerLoadError(f"the archive has no {key}: pack it with {option}")
    path: Path = context.model_dir / name.replace("{rank}", str(context.rank))
    if not path.is_file():
        raise HandlerLoadError(f"the archive has no file {path.name!r}, which its manifest names as {key}")
    return path
