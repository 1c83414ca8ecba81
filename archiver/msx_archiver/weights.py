"""The model's own files: one, or one for each rank, and what belongs to a MindIR: the files in which a large one keeps
its weights, and the rows with which its answers are compared."""

import glob
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePath

from msx_archiver.errors import PackError
from msx_archiver.options import RANK
from msx_core.mindir import EncryptedMindIRError, MindIRError, answers_beside, read_signature


def serialized_name(serialized_file: str) -> str:
    """The name in the manifest: the base name, or the path from the first part with `{rank}` on."""
    parts = PurePath(serialized_file).parts
    ranked = [index for index, part in enumerate(parts) if RANK in part]
    return "/".join(parts[ranked[0] :]) if ranked else parts[-1]


def find_weights(serialized_file: str) -> Iterator[tuple[str, Path]]:
    """Pairs of path in the archive and file on disk. Raises PackError if a file or a rank is missing."""
    name = serialized_name(serialized_file)
    if RANK not in serialized_file:
        yield from with_variables(name, Path(serialized_file))
        return
    for rank, file in enumerate(rank_files(serialized_file)):
        yield from with_variables(name.replace(RANK, str(rank)), file)


def rank_files(serialized_file: str) -> list[Path]:
    """The file, or those of rank 0, 1, 2, … Raises PackError if a rank is missing."""
    if RANK not in serialized_file:
        return [Path(serialized_file)]
    return [_of_rank(serialized_file, rank) for rank in range(_ranks(serialized_file))]


def _ranks(pattern: str) -> int:
    """The number of files from rank 0 on, without a gap."""
    ranks = _existing_ranks(os.path.normpath(pattern))
    missing = next(rank for rank in count() if rank not in ranks)
    if not ranks:
        raise PackError(f"{_of_rank(pattern, 0)} does not exist: '{RANK}' in --serialized-file counts from 0.")
    if missing < max(ranks):
        raise PackError(f"{_of_rank(pattern, missing)} is missing, but {_of_rank(pattern, max(ranks))} exists.")
    return missing


def _existing_ranks(pattern: str) -> set[int]:
    first, *others = (re.escape(part) for part in pattern.split(RANK))
    number = re.compile(first + r"(0|[1-9]\d*)" + r"\1".join(others))
    paths = glob.glob(glob.escape(pattern).replace(RANK, "*"))
    return {int(match[1]) for path in paths if (match := number.fullmatch(path))}


def _of_rank(pattern: str, rank: int) -> Path:
    return Path(pattern.replace(RANK, str(rank)))


def with_variables(name: str, file: Path) -> Iterator[tuple[str, Path]]:
    """The file, and those that belong to it, by their paths in the archive. Raises PackError."""
    yield name, file
    if file.suffix == ".mindir" and file.is_file():
        yield from _variables(PurePath(name).parent, file)
        if (answers := answers_beside(file)).is_file():
            yield PurePath(name).with_name(answers.name).as_posix(), answers


def _variables(parent: PurePath, file: Path) -> Iterator[tuple[str, Path]]:
    """`net_graph.mindir` keeps its weights in files of `net_variables/`, which it names."""
    folder = file.with_name(f"{file.stem.removesuffix('_graph')}_variables")
    beside = {path.relative_to(file.parent).as_posix() for path in folder.rglob("*") if path.is_file()}
    for path in sorted(beside | _named_by(file)):
        if not (file.parent / path).is_file():
            raise PackError(f"{file} keeps weights in '{path}', which is missing beside it.")
        yield (parent / path).as_posix(), file.parent / path


def _named_by(file: Path) -> frozenset[str]:
    try:
        return read_signature(file).external_files
    except EncryptedMindIRError:
        return frozenset()
    except MindIRError as error:
        raise PackError(str(error)) from None
