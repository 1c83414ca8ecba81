"""The groups of ranks in a MindIR or a network, and the groups of this process."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.group_config import GroupOfRanks
from msx_core.mindir_collectives import WORLD_GROUPS, Collective, group_spans
from msx_core.mindspore import collectives
from msx_core.mindspore.encrypted import Decryption, decrypted, encrypted
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.rendezvous import create_group, warm_up


def check_groups(name: str, used: Sequence[Collective], context: Context) -> None:
    """Raises HandlerLoadError if this process cannot compute the collectives: MindSpore itself would crash, hang, or
    give wrong numbers."""
    for one in used:
        ranks = _ranks(name, one, context)
        if one.size and one.size != ranks:
            raise HandlerLoadError(
                f"{name} was exported for {one.size} ranks, and its group has {ranks}: export it anew, or give "
                f"nproc-per-node: {one.size} in model-config.yaml"
            )


def join_groups(groups: Sequence[GroupOfRanks], parallel: Parallel) -> None:
    """Makes those of the groups that this rank is in, and runs a first collective in each. Every rank does it in one
    order, that of the names: so no two wait for each other. Raises HandlerLoadError."""
    for group in sorted(groups):
        if parallel.rank not in group.ranks or group.name in WORLD_GROUPS or collectives.is_group(group.name):
            continue
        if max(group.ranks) >= parallel.world_size:
            raise HandlerLoadError(
                f"the group {group.name!r} has the ranks {list(group.ranks)}, and this model has {parallel.world_size}"
            )
        create_group(group.name, group.ranks)
        collectives.register(group.name, group.ranks)
        warm_up(group.name)


@contextmanager
def with_own_groups(path: Path, used: Sequence[Collective], decryption: Decryption | None = None) -> Iterator[Path]:
    """The file, or a copy in which the group of all ranks has its name in this process. Weights beside the file are
    linked beside the copy; that of an encrypted file is encrypted alike. Raises HandlerLoadError."""
    world, named = _world(), {one.group for one in used}
    if world is None or not named & {*WORLD_GROUPS} - {world}:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mindir-", dir=Path.cwd()) as folder:
        for file in path.parent.iterdir():
            if file != path:
                (Path(folder) / file.name).symlink_to(file)
        copy = Path(folder) / path.name
        copy.write_bytes(_with_world(path, world, decryption))
        yield copy


def counted(run: Callable[..., Any], used: Sequence[Collective]) -> Callable[..., Any]:
    """`run` with its collectives counted: each collective of the graph counts once for each call."""
    world = _world()
    groups = [world if world and one.group in WORLD_GROUPS else one.group for one in used]
    times = Counter(zip([_snake(one.operator) for one in used], groups, strict=True))
    return collectives.counting(run, times) if times else run


def collectives_of(cell: Any) -> list[Collective]:
    """The collectives among the primitives of an `nn.Cell`."""
    found = []
    for _, inner in cell.cells_and_names():
        for primitive in inner._primitives.values():
            group = (getattr(primitive, "attrs", None) or {}).get("group")
            if isinstance(group, str) and group:
                found.append(Collective(primitive.name, group))
    return found


def _ranks(name: str, one: Collective, context: Context) -> int:
    """How many ranks its group has."""
    together = f"{name} computes together with other ranks ({one.operator} in the group {one.group!r})"
    if context.world_size == 1:
        raise HandlerLoadError(
            f"{together}, and this model has one: give parallelType: tp and msrun: {{nproc-per-node: …}} in "
            "model-config.yaml"
        )
    group = _world() if one.group in WORLD_GROUPS else one.group
    if group is None:
        raise HandlerLoadError(
            f"{together}, and this process has not joined its group: call init_parallel(context) instead of setup()"
        )
    try:
        return len(collectives.members(group))
    except ValueError as error:
        raise HandlerLoadError(
            f"{together}: {error}. Export it with the group of all ranks, which is the default"
        ) from None


def _world() -> str | None:
    """The name of the group of all ranks in this process; None before `init_parallel`."""
    return next((name for name in WORLD_GROUPS if collectives.is_group(name)), None)


def _with_world(path: Path, world: str, decryption: Decryption | None) -> bytes | bytearray:
    if decryption is None:
        return _renamed(path.read_bytes(), world)
    return encrypted(bytes(_renamed(decrypted(path, decryption), world)), decryption)


def _renamed(data: bytes, world: str) -> bytearray:
    renamed, others = bytearray(data), {name.encode() for name in WORLD_GROUPS}
    for start, end in group_spans(data):
        if data[start:end] in others:
            renamed[start:end] = world.encode()
    return renamed


def _snake(operator: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operator).lower()
