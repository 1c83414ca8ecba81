"""The environment of a worker process."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msx_core.sequences import SequenceKeys
from msx_frontend.devices.nodes import OnNode

THREADS = "OMP_NUM_THREADS"
_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


def worker_environment(
    inherited: Mapping[str, str],
    model_dir: Path,
    *,
    devices: Mapping[str, str],
    rank: int = 0,
    world_size: int = 1,
    meets: bool = False,
    omp_threads: int | None = None,
    fewer_cores: int | None = None,
    sequence_keys: SequenceKeys | None = None,
    blocked: re.Pattern[str] | None = None,
) -> dict[str, str]:
    """Inherited environment, less what `blacklist_env_vars` (a regular expression) names, and the variables of a rank.

    RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE are torchrun's names, which only groups that meet have (`meets`):
    a library of torch that finds them (accelerate, say) waits for the other ranks. RANK_ID, RANK_SIZE and DEVICE_ID
    are MindSpore's. `devices` is what the accelerator adds for the group's devices. `fewer_cores`: so many threads
    are enough, where `omp_threads` does not say how many.
    """
    env = without_blocked(inherited, blocked)
    mine, all_ranks = str(rank), str(world_size)
    env = _with_torchrun(env, (mine, mine, all_ranks, all_ranks), meets=meets)
    env |= {"RANK_ID": mine, "RANK_SIZE": all_ranks, "DEVICE_ID": mine}
    env |= (sequence_keys or SequenceKeys()).to_env()
    env |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": python_path(env, model_dir)}
    env |= devices
    if omp_threads is not None:
        env[THREADS] = str(omp_threads)
    elif fewer_cores is not None:
        env.setdefault(THREADS, str(fewer_cores))
    return env


def node_environment(
    inherited: Mapping[str, str],
    place: OnNode,
    *,
    devices: Mapping[str, str],
    rank: int,
    world_size: int,
    meets: bool = False,
    omp_threads: int | None = None,
    sequence_keys: SequenceKeys | None = None,
    blocked: re.Pattern[str] | None = None,
) -> dict[str, str]:
    """Variables that a rank on another machine gets of this one. All else is the node's own: its Python, its folders,
    its CANN and how its network is set up (PATH, LD_LIBRARY_PATH, ASCEND_*, HCCL_*, HOME, PYTHONPATH).

    `devices` is what shows the group's devices on that machine. RANK and WORLD_SIZE count the whole group, LOCAL_RANK,
    LOCAL_WORLD_SIZE and DEVICE_ID the ranks on its node.
    """
    env = without_blocked({name: value for name, value in inherited.items() if _travels(name)}, blocked)
    mine, local, all_ranks = str(rank), str(place.local_rank), str(world_size)
    env = _with_torchrun(env, (mine, local, all_ranks, str(place.local_ranks)), meets=meets)
    env |= {"RANK_ID": mine, "RANK_SIZE": all_ranks, "DEVICE_ID": local, "PYTHONUNBUFFERED": "1"}
    env |= (sequence_keys or SequenceKeys()).to_env()
    env |= devices
    if omp_threads is not None:
        env[THREADS] = str(omp_threads)
    return env


def without_blocked(env: Mapping[str, str], blocked: re.Pattern[str] | None) -> dict[str, str]:
    """Variables that workers inherit, where `blocked` matches names of those that they do not."""
    return {name: value for name, value in env.items() if not (blocked and blocked.fullmatch(name))}


def _with_torchrun(env: Mapping[str, str], values: tuple[str, ...], *, meets: bool) -> dict[str, str]:
    """None of these variables is inherited."""
    own = {name: value for name, value in env.items() if name not in _TORCHRUN}
    return {**own, **dict(zip(_TORCHRUN, values, strict=True))} if meets else own


def _travels(name: str) -> bool:
    """TorchServe's settings, which its handlers read, without those that name a file of this machine; and where spans
    are sent to."""
    return (name.startswith("TS_") and name != "TS_CONFIG_FILE") or name.startswith(("OTEL_", "MSX_TRACING"))


def python_path(inherited: Mapping[str, str], model_dir: Path) -> str:
    """The archive's modules come last here: at import of the worker itself they must not shadow anything.

    The worker puts the model's folder first when it resolves the handler.
    """
    return os.pathsep.join(filter(None, [inherited.get("PYTHONPATH", ""), str(model_dir)]))
