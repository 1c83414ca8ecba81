"""A model in Hugging Face's layout as a model's folder whose files are links: nothing is copied."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msx_archiver.errors import PackError
from msx_archiver.linked_servable import linked, write_manifest
from msx_archiver.options import PackOptions
from msx_archiver.pack import check_options
from msx_archiver.servable import YAML
from msx_core.json_text import json_text
from msx_core.manifest import CHOSEN_BY_SERVER, MANIFEST_PATH, ModelEntry
from msx_core.model_families import CLASSIFIES, EMBEDS, GENERATES

CONFIG = "config.json"
MODULES = "modules.json"
"""Sentence Transformers' list of what stands behind the network: such a model makes vectors, or scores."""
SCORES = b'.LogitScore"'
"""The module behind a language model that scores pairs of texts by a word."""
VERSION = "1.0"
_MOST_BYTES = 1 << 20
_SUFFIXES = (".json", ".safetensors", ".txt", ".model", ".jinja")
"""Suffixes of what the handlers read. Other weights are large, and code of the hub's would be on the worker's path."""


def linked_checkpoint(folder: Path, name: str, target: Path) -> Path:
    """A model's folder (`no-archive`) at `target`, which must not exist, for the handler that `config.json` asks for;
    the server chooses the engine.

    The model's configuration is the folder's own `model-config.yaml`, if it has one. Where nothing in `folder` has
    changed, the made folder has the same digest again. Raises PackError, OSError.
    """
    check_options(PackOptions(model_name=name, handler=GENERATES))
    handler, files = handler_of(folder), checkpoint_files(folder)
    linked(files.items(), target)
    write_manifest(
        target,
        ModelEntry(
            model_name=name,
            handler=handler,
            model_version=VERSION,
            config_file=YAML if YAML in files else None,
            engine=CHOSEN_BY_SERVER,
        ),
    )
    made = (folder / CONFIG).stat()
    os.utime(target / MANIFEST_PATH, ns=(made.st_mtime_ns, made.st_mtime_ns))
    return target


def checkpoint_files(folder: Path) -> dict[str, Path]:
    """Files that the handlers read, by their paths in the folder. Raises PackError."""
    files = dict(_files(folder))
    if not any(file.endswith(".safetensors") for file in files):
        raise PackError(f"{folder} has no *.safetensors, the only format of weights that is read.")
    return files


def handler_of(folder: Path) -> str:
    """Handler of MSX's own engine which `config.json` asks for. Raises PackError."""
    named = read_config(folder).get("architectures") or [""]
    known = str(named[0]) if isinstance(named, list) else ""
    if known.endswith("ForSequenceClassification") or _scores(folder / MODULES):
        return CLASSIFIES
    is_decoder = known.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) or not known
    return GENERATES if is_decoder and not (folder / MODULES).is_file() else EMBEDS


def _scores(modules: Path) -> bool:
    try:
        with modules.open("rb") as file:
            return SCORES in file.read(_MOST_BYTES)
    except OSError:
        return False


def read_config(folder: Path) -> dict[str, Any]:
    """The members of `config.json`. Raises PackError."""
    path = folder / CONFIG
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise PackError(
            f"{path} cannot be read ({error.strerror}): name the folder of a model in Hugging Face's layout, with "
            f"{CONFIG}, tokenizer.json and *.safetensors."
        ) from None
    try:
        found = json.loads(json_text(data)) if len(data) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PackError(f"{path} is not a JSON object of at most {_MOST_BYTES >> 20} MiB.")
    return found


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files by their paths in the folder; a hub's cache has links to files, which count as files."""
    for at, folders, names in os.walk(root):
        here = Path(at)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "MAR-INF")
        for name in sorted(names):
            if is_read(path := (here / name).relative_to(root).as_posix()):
                yield path, here / name


def is_read(path: str) -> bool:
    """Whether the handlers may read the file at that path in the folder."""
    name = path.rpartition("/")[2]
    return (name.endswith(_SUFFIXES) and not name.startswith(".")) or path == YAML
