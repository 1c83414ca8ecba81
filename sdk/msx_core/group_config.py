"""Reads the groups of ranks that MindSpore writes beside a model that it has divided (GROUP_INFO_FILE), without
MindSpore."""

from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from msx_core import protowire as wire
from msx_core.protowire import Span, WireError

GROUP_CONFIG = "group_config.pb"
"""The file's name in an archive."""
MOST_BYTES = 16 << 20
"""Bytes of one file. Real ones have some hundred bytes a group."""
MOST_GROUPS = 10_000

# Field numbers of MindSpore's node_strategy.proto (ParallelGroupMap).
_MAP_ITEM, _ITEM_NAME, _ITEM_RANKS, _RANKS_DIM = 1, 1, 2, 1


class GroupConfigError(ValueError):
    """The file does not hold groups of ranks; the message names the file."""


class GroupOfRanks(NamedTuple):
    """A group by which the collectives of a graph call it, and its ranks in ascending order of their places."""

    name: str
    ranks: tuple[int, ...]


def read_group_config(path: str | PathLike[str]) -> list[GroupOfRanks]:
    """The groups in the file's order. Raises GroupConfigError."""
    data = _read(Path(path))
    try:
        groups = [_group(data, item) for item in wire.messages(data, (0, len(data)), _MAP_ITEM)]
    except WireError as error:
        raise GroupConfigError(f"{fspath(path)} is not a file of groups (GROUP_INFO_FILE): {error}") from None
    _check(fspath(path), groups)
    return groups


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise GroupConfigError(f"the file of groups {path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise GroupConfigError(f"{path} is larger than {MOST_BYTES} bytes, the most that a file of groups may have")
    return data


def _group(data: bytes, span: Span) -> GroupOfRanks:
    name, ranks = "", list[int]()
    for number, value in wire.fields(data, span):
        if number == _ITEM_NAME:
            name = wire.as_text(data, value)
        elif number == _ITEM_RANKS:
            for inner, dims in wire.fields(data, wire.as_span(value)):
                ranks += wire.packed_ints(data, dims) if inner == _RANKS_DIM else ()
    return GroupOfRanks(name, tuple(ranks))


def _check(path: str, groups: list[GroupOfRanks]) -> None:
    if len(groups) > MOST_GROUPS:
        raise GroupConfigError(f"{path} has {len(groups)} groups; {MOST_GROUPS} are the most")
    names = [group.name for group in groups]
    for group in groups:
        if not group.name or not group.ranks:
            raise GroupConfigError(f"{path} has a group without a name or without ranks")
        if len(set(group.ranks)) < len(group.ranks):
            raise GroupConfigError(f"{path}: the group {group.name!r} names a rank twice: {list(group.ranks)}")
        if names.count(group.name) > 1:
            raise GroupConfigError(f"{path} has the group {group.name!r} twice")
