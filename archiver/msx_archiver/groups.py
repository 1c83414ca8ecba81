"""Checks that the model can run on the ranks of its config: what would fail on the server is refused when it is
packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msx_archiver.errors import PackError
from msx_archiver.handler_source import PARALLEL_TYPES, cannot_be_led, installed, source_of, stated
from msx_archiver.options import RANK
from msx_archiver.python_files import HandlerFile
from msx_archiver.weights import rank_files
from msx_core.group_config import GROUP_CONFIG, GroupConfigError, read_group_config
from msx_core.groups import group_refused
from msx_core.mindir import EncryptedMindIRError, MindIRError, TensorSpec, read_signature
from msx_core.mindir_collectives import WORLD_GROUPS, read_collectives

if TYPE_CHECKING:
    from msx_core.config import ModelConfig

MINDIR = ".mindir"
MINDSPORE_FILES = (MINDIR, ".ckpt", ".safetensors")


def check_group(
    handler: HandlerFile, config: ModelConfig, serialized_file: str | None, group_config: Path | None = None
) -> list[str]:
    """Returns warnings; raises PackError. `group_config` has the groups that the server makes beside that of all ranks.

    Only files of MSX's built-in handlers are checked: what other handlers do with their files is unknown, and
    TorchServe has a handler with the same name as one of ours.
    """
    ours = installed(handler) is not None
    if ours and serialized_file and not serialized_file.endswith(MINDSPORE_FILES):
        return []
    if config.layout.ranks > 1:
        _check_handler(handler, config.parallel_type)
    if not ours or serialized_file is None:
        return []
    if serialized_file.endswith(MINDIR):
        _check_mindirs(rank_files(serialized_file), config.layout.ranks, _read_groups(group_config))
    return list(_check_files(serialized_file, config.layout.ranks))


def _check_handler(handler: HandlerFile, kind: str) -> None:
    tree = source_of(handler)
    if tree is None:
        return
    kinds = stated(tree, handler.name, PARALLEL_TYPES)
    if kinds is not None and kind not in kinds:
        sentence = group_refused(handler.name, kinds, kind)
        raise PackError(f"{sentence[0].upper()}{sentence[1:]}.")
    if kinds is None and cannot_be_led(tree, handler.name):
        raise PackError(
            f"{handler.file}: an async handler without follow(message) serves models of one rank, and --config-file "
            f"says parallelType: {kind}: make handle() a plain function or a generator, or lead the other ranks by "
            "context.lead(message)."
        )


def _check_files(serialized_file: str, ranks: int) -> Iterator[str]:
    files = len(rank_files(serialized_file))
    if RANK in serialized_file and files != ranks:
        raise PackError(
            f"--serialized-file: there are {files} files '{serialized_file}', and the model has {_number(ranks)}: give "
            f"parallelType: tp and msrun: {{nproc-per-node: {files}}} in --config-file."
        )
    if RANK not in serialized_file and ranks > 1 and serialized_file.endswith(MINDIR):
        yield f"All {ranks} ranks load {serialized_file}; with '{RANK}' in its name each has its own."


def _read_groups(file: Path | None) -> dict[str, int]:
    """The sizes of the groups, by their names. Raises PackError."""
    try:
        return {} if file is None else {group.name: len(group.ranks) for group in read_group_config(file)}
    except GroupConfigError as error:
        raise PackError(f"{error}.") from None


def _check_mindirs(files: list[Path], ranks: int, groups: Mapping[str, int]) -> None:
    try:
        first = read_signature(files[0]).inputs
        for file in files:
            own = read_signature(file).inputs
            _check_collectives(file, ranks, groups)
            if own != first:
                raise PackError(f"{file} takes {_named(own)}, and {files[0]} {_named(first)}: all ranks get the same.")
    except EncryptedMindIRError:
        return
    except MindIRError as error:
        raise PackError(str(error)) from None
    except FileNotFoundError as error:
        raise PackError(f"--serialized-file: '{error.filename}' does not exist.") from None


def _check_collectives(file: Path, ranks: int, groups: Mapping[str, int]) -> None:
    for one in read_collectives(file):
        together = f"{file} computes together with other ranks ({one.operator} in the group '{one.group}')"
        if ranks == 1:
            raise PackError(
                f"{together}, and the model has one: give parallelType: tp and msrun: {{nproc-per-node: …}} in "
                "--config-file."
            )
        members = ranks if one.group in WORLD_GROUPS else groups.get(one.group)
        if members is None:
            raise PackError(
                f"{together}, which the server does not make: export it with the group of all ranks, or give "
                f"--extra-files {GROUP_CONFIG}, the file of groups (GROUP_INFO_FILE) that has this one."
            )
        if one.size not in (0, members):
            group = "the model" if one.group in WORLD_GROUPS else f"the group '{one.group}'"
            raise PackError(f"{file} was exported for {_number(one.size)}, and {group} has {_number(members)}.")


def _named(inputs: list[TensorSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec.dtype}{list(spec.shape)}" for spec in inputs) or "nothing"


def _number(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"
