"""`--huggingface`: language models in Hugging Face's layout, or in a GGUF file, as models' folders of links for the
start."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.linked_checkpoint import linked_checkpoint
from msx_archiver.linked_gguf import gguf_in, linked_gguf
from msx_core.file_kinds import GGUF
from msx_core.start_errors import StartError
from msx_frontend.models.startup.servable_folders import PackedServables


class HuggingFaceError(StartError):
    """A value of `--huggingface` cannot be meant so; the message names it."""


def link_checkpoints(given: Sequence[str], into: Path, packed: PackedServables) -> None:
    """Adds to `packed` the folder that is made of each `NAME=DIR` below `into`, or why it could not be made. Blocks.

    The name is the folder's own where there is none. Raises HuggingFaceError for a name that is given twice.
    """
    for name, folder in named_checkpoints(given):
        try:
            packed.archives.append(_linked(name, folder, into))
        except (ArchiveError, OSError) as error:
            packed.failures.append((f"model {name} (--huggingface) could not be loaded: {error}", name))


def named_checkpoints(given: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The name and the folder of each. Raises HuggingFaceError for a name that is given twice."""
    names: set[str] = set()
    for name, folder in map(_named, given):
        if name in names:
            raise HuggingFaceError(f"--huggingface {name}={folder}: another model has the name {name}; give it another")
        names.add(name)
        yield name, folder


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    folder = Path(path if equals else name).resolve()
    return (name if equals else folder.name.removesuffix(GGUF)), folder


def _linked(name: str, folder: Path, into: Path) -> Path:
    target = into / name
    if target.parent == into and target.is_dir():  # a name with slashes is refused below
        shutil.rmtree(target)
    file = gguf_in(folder)
    return linked_checkpoint(folder, name, target) if file is None else linked_gguf(file, name, target)
