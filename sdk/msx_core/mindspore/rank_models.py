"""One model of which each rank of a group has a MindIR of its own: rank 0 calls it, and the last rank's outputs are the
answer."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_core.config import parse_model_config
from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.failures import summary
from msx_core.group_config import GROUP_CONFIG, GroupConfigError, read_group_config
from msx_core.mindir import TensorSpec
from msx_core.mindspore.encrypted import Decryption
from msx_core.mindspore.groups import join_groups
from msx_core.mindspore.network import Network, load_mindir_file
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.rank_messages import RankMessages

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


log = logging.getLogger("msx.servable")

GO_ON: list[Any] = []
"""Message of rank 0 to the others when all have failed alike."""


class RankModel:
    """Model of several ranks. On rank 0 call it within `leading()`; on the other ranks `follow()` for each of rank 0's
    `leading()`.

    A call that fails on every rank, as one with wrong inputs does, is a failed call. Where only some have failed, it is
    not known where the others stand: an error ends the call of the handler, or, where a rank waits for others that
    cannot come, `give_up` ends its process after `patience` seconds; the server then ends the group and starts anew.
    """

    def __init__(
        self,
        parallel: Parallel,
        subgraphs: Sequence[Network],
        messages: RankMessages,
        patience: float,
        give_up: Callable[[], None],
    ) -> None:
        self._subgraphs, self._messages = subgraphs, messages
        self._patience, self._give_up = patience, give_up
        self._rank, self._last = parallel.rank, parallel.world_size - 1
        self._others = range(1, parallel.world_size)
        self._failed: RuntimeError | None = None
        self._taking = self._gather([bool(network.inputs) for network in subgraphs])
        """Whether a rank takes the inputs of a subgraph, by rank and subgraph."""
        self.outputs: list[list[TensorSpec]] = self._last_outputs()

    @property
    def follows(self) -> bool:
        return self._rank > 0

    @property
    def inputs(self) -> list[list[TensorSpec]]:
        """Inputs by subgraph, on rank 0."""
        return [network.inputs for network in self._subgraphs]

    @contextlib.contextmanager
    def leading(self) -> Iterator[None]:
        """Stands around the calls of one batch, on rank 0. Raises RuntimeError if the ranks differ, whoever caught
        it."""
        yield
        if self._failed is not None:
            raise self._failed
        for rank in self._others:
            self._messages.send(None, rank)

    def __call__(self, arrays: Sequence[Array], subgraph: int = 0) -> list[Array]:
        """Return the outputs of the last rank, on rank 0. Raises RuntimeError."""
        if self._failed is not None:
            raise self._failed
        for rank in self._others:
            self._messages.send([subgraph, list(arrays) if self._taking[rank][subgraph] else []], rank)
        try:
            own = self._run(subgraph, arrays)
        except RuntimeError as error:
            self._settle(error)
            raise
        told: list[Array] | str = self._messages.receive(self._last) if self._last else own
        if isinstance(told, str):
            self._failed = RuntimeError(told)
            raise self._failed
        return told

    def follow(self) -> None:
        """Compute what rank 0 says until its batch is done, on the other ranks."""
        while (call := self._messages.receive(0)) is not None:
            subgraph, arrays = call
            try:
                outputs = self._run(subgraph, arrays)
            except RuntimeError as error:
                self._messages.send(str(error), 0)
                with self._waiting(error):
                    self._messages.receive(0)  # to go on
                continue
            if self._rank == self._last:
                self._messages.send(outputs, 0)

    def _run(self, subgraph: int, arrays: Sequence[Array]) -> list[Array]:
        try:
            return self._subgraphs[subgraph](arrays)
        except Exception as error:
            raise RuntimeError(f"Error happened on get result of rank {self._rank}: {summary(error)}") from error

    def _settle(self, error: RuntimeError) -> None:
        """Ask on rank 0, which has failed, whether all others have, too."""
        with self._waiting(error):
            told = [self._messages.receive(rank) for rank in self._others]
        if not all(isinstance(one, str) for one in told):
            self._failed = error
            return
        for rank in self._others:
            self._messages.send(GO_ON, rank)

    @contextlib.contextmanager
    def _waiting(self, error: RuntimeError) -> Iterator[None]:
        """Ranks that have not failed may wait for this one in a collective: then they say nothing."""
        timer = threading.Timer(self._patience, self._end, (error,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end(self, error: RuntimeError) -> None:
        log.error("%s. The other ranks did not fail within rankSkewTimeout: this rank ends", error)
        self._give_up()

    def _gather(self, own: list[bool]) -> list[list[bool]]:
        """Gather on rank 0 the report of each rank."""
        if self.follows:
            self._messages.send(own, 0)
            return []
        return [own, *(self._messages.receive(rank) for rank in self._others)]

    def _last_outputs(self) -> list[list[TensorSpec]]:
        """Outputs of the last rank, on rank 0 and on itself."""
        own = [network.outputs for network in self._subgraphs]
        if self._rank == self._last:
            if self.follows:
                self._messages.send([[[spec.name, spec.dtype, list(spec.shape)] for spec in one] for one in own], 0)
            return own
        if self.follows:
            return []
        told = self._messages.receive(self._last)
        return [[TensorSpec(name, dtype, tuple(shape)) for name, dtype, shape in specs] for specs in told]


def load_rank_model(
    context: Context, parallel: Parallel, rank_size: int, stage_size: int, decryption: Decryption | None = None
) -> RankModel:
    """This rank's files, as the start script of a distributed servable gives them, or else the archive's: those of the
    folder `device0`, `device1`, … beside the version's other files. Each rank must come here. Raises HandlerLoadError.
    """
    if (parallel.world_size, parallel.stages) != (rank_size, stage_size):
        raise HandlerLoadError(_layout_refused(context, parallel, rank_size, stage_size))
    start = context.info.servable
    if start is not None and start.rank_models:
        files = [Path(file) for file in start.rank_models[parallel.rank]]
        groups = [Path(file) for file in start.rank_groups[parallel.rank]] if start.rank_groups else []
    else:
        files, groups = _packed_files(context.model_dir / context.model_version, parallel.rank)
    join_group_files(groups, parallel)
    networks = [load_mindir_file(file, context, decryption) for file in files]
    patience = parse_model_config(context.model_yaml_config)[0].rank_skew_timeout
    return RankModel(parallel, networks, RankMessages(parallel.world_group), patience, partial(os._exit, 1))


def _packed_files(version: Path, rank: int) -> tuple[list[Path], list[Path]]:
    """The MindIR files and the groups of a rank. Raises HandlerLoadError."""
    folder = version / f"device{rank}"
    files = sorted(folder.glob("*.mindir"))
    if not files:
        raise HandlerLoadError(
            f"the archive has no MindIR for rank {rank}: put it into {version.name}/device{rank}/ of the servable's "
            "folder, or hand it over by distributed.startup_agents"
        )
    return files, [file for file in (folder / GROUP_CONFIG, version / GROUP_CONFIG) if file.is_file()][:1]


def _layout_refused(context: Context, parallel: Parallel, rank_size: int, stage_size: int) -> str:
    in_stage = rank_size // stage_size
    kind = "tp" if stage_size == 1 else "pp" if in_stage == 1 else "pptp"
    split = f", parallel: {{pipelineStages: {stage_size}, tensorParallel: {in_stage}}}" if kind == "pptp" else ""
    return (
        f"servable '{context.model_name}' declares {rank_size} ranks in {stage_size} stages, and its group has "
        f"{parallel.world_size} in {parallel.stages}: give parallelType: {kind}{split} and "
        f"msrun: {{nproc-per-node: {rank_size}}} in model-config.yaml"
    )


def join_own_groups(context: Context, parallel: Parallel) -> None:
    """The groups of the archive's `group_config.pb`, if it has one. Raises HandlerLoadError."""
    file = context.model_dir / GROUP_CONFIG
    join_group_files([file] if file.is_file() else [], parallel)


def join_group_files(files: Sequence[Path], parallel: Parallel) -> None:
    """Raises HandlerLoadError."""
    try:
        groups = [group for file in files for group in read_group_config(file)]
    except GroupConfigError as error:
        raise HandlerLoadError(str(error)) from None
    join_groups(groups, parallel)
