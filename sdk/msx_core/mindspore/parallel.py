"""Which part of a model this rank holds, and the start of the collectives between the ranks."""

import os
import sys
from dataclasses import dataclass

from msx_core.config import ModelConfig, parse_model_config
from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.mindspore import collectives
from msx_core.mindspore.rendezvous import Rendezvous, create_group, meet, warm_up
from msx_core.mindspore.runtime import setup

__all__ = ["Parallel", "init_parallel"]

OP_TIMEOUT = "MS_CPU_COMM_OP_TIMEOUT"
_A_WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class Parallel:
    """This rank's place: ranks are laid out stage by stage, rank = stage × tp_size + tp_rank.

    `tp_group` are the ranks that hold shards of the same layers, `pp_group` those that hold the same shard of all
    stages; the functions of `msx_core.mindspore.collectives` take these names.
    """

    rank: int = 0
    stages: int = 1
    tp_size: int = 1
    target: str = "CPU"
    world_group: str = "world"

    @property
    def world_size(self) -> int:
        return self.stages * self.tp_size

    @property
    def stage(self) -> int:
        return self.rank // self.tp_size

    @property
    def tp_rank(self) -> int:
        return self.rank % self.tp_size

    @property
    def first_stage(self) -> bool:
        return self.stage == 0

    @property
    def last_stage(self) -> bool:
        return self.stage == self.stages - 1

    @property
    def tp_ranks(self) -> tuple[int, ...]:
        first = self.stage * self.tp_size
        return tuple(range(first, first + self.tp_size))

    @property
    def pp_ranks(self) -> tuple[int, ...]:
        return tuple(self.peer(stage) for stage in range(self.stages))

    @property
    def tp_group(self) -> str:
        return self.world_group if self.stages == 1 else f"tp-{self.stage}"

    @property
    def pp_group(self) -> str:
        return self.world_group if self.tp_size == 1 else f"pp-{self.tp_rank}"

    @property
    def graphs_hang(self) -> bool:
        """True on a CPU, where graphs with collectives between some of the ranks sometimes never return (MindSpore
        2.10)."""
        return self.target == "CPU" and self.stages > 1 and self.tp_size > 1

    def peer(self, stage: int) -> int:
        """The rank that holds the same shard of another stage."""
        return stage * self.tp_size + self.tp_rank


def init_parallel(context: Context) -> Parallel:
    """Set MindSpore up (`setup`), meet the other ranks, make the groups and run a first collective in each.

    Call it before `import mindspore`. A model of one rank does not wait for others. Raises HandlerLoadError
    when the ranks, `parallel:` of model-config.yaml and the environment do not fit together, or when a rank does not
    come within `startupTimeout`.
    """
    config = parse_model_config(context.model_yaml_config)[0]
    layout = config.layout
    _check_size(context, layout.ranks)
    if layout.ranks == 1:
        alone = Parallel(target=setup(context))
        collectives.register(alone.world_group, (0,))
        return alone
    _set_environment(config)
    context.report_progress("importing MindSpore")
    target = setup(context)
    _limit_threads(config, target)
    meeting = _meeting(context, config)
    context.report_progress("meeting the other ranks")
    world_group = meet(meeting, target)
    parallel = Parallel(context.rank, layout.pipeline_stages, layout.tensor_parallel, target, world_group)
    _make_groups(parallel)
    return parallel


def _check_size(context: Context, ranks: int) -> None:
    if context.world_size != ranks:
        raise HandlerLoadError(
            f"model-config.yaml describes a group of {ranks} ranks, but this process is one of {context.world_size}: "
            "parallelType, parallel: and nproc-per-node must give the number of processes that were started"
        )
    stated = os.environ.get("WORLD_SIZE", str(ranks))
    if ranks > 1 and stated != str(ranks):
        raise HandlerLoadError(
            f"the environment has WORLD_SIZE={stated}, but model-config.yaml describes {ranks} ranks"
        )


def _set_environment(config: ModelConfig) -> None:
    """Sets the variables that MindSpore reads when it is imported or started. Those that the operator has set are
    kept."""
    if "mindspore" in sys.modules and OP_TIMEOUT not in os.environ:
        raise HandlerLoadError("MindSpore is already imported: call init_parallel(context) before anything imports it")
    # A rank may wait for its peers as long as they live: the server ends the whole group when one dies.
    os.environ.setdefault(OP_TIMEOUT, str(_A_WEEK))
    os.environ.setdefault("OMP_NUM_THREADS", str(_threads(config)))


def _threads(config: ModelConfig) -> int:
    launcher = config.msrun or config.torchrun
    return config.mindspore.threads or (launcher.omp_number_threads if launcher else 1)


def _limit_threads(config: ModelConfig, target: str) -> None:
    if target == "CPU" and config.mindspore.threads is None:  # which `setup` has done, and MindSpore allows once
        import mindspore as ms

        ms.device_context.cpu.op_tuning.threads_num(_threads(config))


def _meeting(context: Context, config: ModelConfig) -> Rendezvous:
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if missing:
        raise HandlerLoadError(
            f"rank {context.rank}: the environment variables {' and '.join(missing)}, by which ranks find each other, "
            "are missing; msx-serve sets both; a program that starts the ranks without the server must set them, too"
        )
    port = os.environ["MASTER_PORT"]
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise HandlerLoadError(f"rank {context.rank}: MASTER_PORT={port!r} is not a port (1 to 65535)")
    layout = config.layout
    return Rendezvous(
        context.rank,
        context.world_size,
        os.environ["MASTER_ADDR"],
        int(port),
        config.startup_timeout,
        f"{layout.pipeline_stages} pipeline stages × {layout.tensor_parallel} shards",
    )


def _make_groups(parallel: Parallel) -> None:
    groups = {
        parallel.world_group: tuple(range(parallel.world_size)),
        parallel.tp_group: parallel.tp_ranks,
        parallel.pp_group: parallel.pp_ranks,
    }
    for name, ranks in groups.items():
        collectives.register(name, ranks)
        if len(ranks) > 1:
            if name != parallel.world_group:
                create_group(name, ranks)
            warm_up(name)
