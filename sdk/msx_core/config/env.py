"""`env:`, variables of the environment that a model's workers have.

Messages have the names of variables and never their values, which may be secrets.
"""

import re
from collections.abc import Mapping
from typing import Any

from msx_core.values import ConfigError

MOST_VARIABLES = 256
MOST_CHARACTERS = 32_768
"""Characters of one value."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNED = re.compile(
    r"(LOCAL_)?(RANK|WORLD_SIZE)|RANK_(ID|SIZE|TABLE_FILE)|DEVICE_ID|MASTER_.*|MSX_.*|MS_(ROLE|SCHED_.*|WORKER_NUM|NODE_ID)"
    r"|[A-Z_]+_VISIBLE_DEVICES|TS_.*|LOG_LOCATION|METRICS_LOCATION"
)
"""Variables that the server sets for its workers. Devices are `deviceIds`."""
_BEFORE_THE_WORKER = re.compile(r"PYTHON.*|LD_.*|GLIBC_TUNABLES|GCONV_PATH|OPENSSL_(CONF|MODULES|ENGINES)")
"""Variables that act on a process before it has given up the server's rights."""

Environment = dict[str, str]


def environments(env: Any) -> tuple[Environment, ...]:
    """One mapping for all workers, or one for each; empty without `env`. Raises ConfigError."""
    if env is None:
        return ()
    written = env if isinstance(env, (list, tuple)) else [env]
    if not all(isinstance(one, Mapping) for one in written):
        raise ConfigError(
            "env: is not a mapping of variables to their values, or a list with such a mapping for each worker"
        )
    return tuple(_environment(one) for one in written)


def check_env(env: Any, workers: int | None) -> None:
    """`workers`: how many are wanted, if the file says so. Raises ConfigError."""
    found = environments(env)
    if isinstance(env, (list, tuple)) and not (found and workers in (None, len(found))):
        have = f"the model has {workers} workers" if workers is not None else "it is empty"
        raise ConfigError(f"env: a list has one mapping for each worker: this one has {len(found)}, and {have}")


def environment_of(env: Any, place: int) -> Environment:
    """Variables of the worker at this place, from 0; workers beyond the end of a list begin again at its first."""
    found = environments(env)
    return found[place % len(found)] if found else {}


def _environment(written: Mapping[Any, Any]) -> Environment:
    if len(written) > MOST_VARIABLES:
        raise ConfigError(f"env: has {len(written)} variables, and at most {MOST_VARIABLES} are allowed")
    for name, value in written.items():
        _check_name(name)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ConfigError(f"env.{name}: its value is not a text or a number; put it into quotes")
        if isinstance(value, str) and ("\0" in value or len(value) > MOST_CHARACTERS):
            raise ConfigError(f"env.{name}: its value has a NUL, or more than {MOST_CHARACTERS} characters")
    return {name: str(value) for name, value in written.items()}


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"env: {str(name)[:80]!r} is not a name of a variable: use letters, digits and '_'")
    if _OWNED.fullmatch(name):
        hint = "; choose devices by deviceIds" if "DEVICE" in name else ""
        raise ConfigError(f"env.{name}: the server gives its workers this variable, and a model cannot change it{hint}")
    if _BEFORE_THE_WORKER.fullmatch(name):
        raise ConfigError(
            f"env.{name}: a model cannot set this variable, because it acts before the worker gives up the server's "
            "rights; set it in the server's own environment"
        )
