"""`model-config.yaml`: one typed schema, TorchServe's keys and our own.

Every key is described in docs/model-config.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from msx_sdk._config_checks import ParallelLayout, check, find_layout
from msx_sdk._config_sections import (
    Buckets,
    DeviceType,
    GenerationConfig,
    Ids,
    Isa,
    JsonBodies,
    Mode,
    ParallelType,
    Policy,
    ReasoningParser,
    Requests,
    ToolParser,
    read_fields,
)
from msx_sdk.safe_yaml import read_yaml
from msx_sdk.values import ConfigError, Count, Fraction, Positive, Seconds, Switch, Text, convert, show

__all__ = [
    "ConfigError",
    "Launcher",
    "MindSporeOptions",
    "ModelConfig",
    "ParallelLayout",
    "ParallelSplit",
    "load_model_config",
    "parse_model_config",
]


MOST_VALUES = 100_000
"""In a whole model-config.yaml."""


class Launcher(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """`msrun:`, or `torchrun:` of a config written for TorchServe. MSX starts the ranks itself."""

    nnodes: Positive = 1
    nproc_per_node: Positive | None = None
    rdzv_backend: Text = "c10d"
    rdzv_endpoint: Text | None = None
    rdzv_conf: Text | None = None
    monitor_interval: Count = 5
    node_rank: Count = 0
    omp_number_threads: Positive = msgspec.field(default=1, name="OMP_NUMBER_THREADS")


class ParallelSplit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`parallel:`, how the ranks of a group divide the model."""

    pipeline_stages: Positive | None = None
    tensor_parallel: Positive | None = None


class MindSporeOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`mindspore:`, how a worker sets up MindSpore; None leaves the choice to the handler."""

    isa: Isa | None = None
    threads: Positive | None = None
    compile_cache: Switch | Text | None = None
    mode: Mode | None = None


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of one model version.

    Units are TorchServe's: `max_batch_delay` ms, `response_timeout` and `startup_timeout` s,
    `client_timeout_in_mills` ms, `max_retry_timeout_in_sec` s; `cache_memory` and
    `max_worker_memory` MiB.
    `raw` is the file's whole mapping (a handler's `context.model_yaml_config`); `explicit` holds the names of the
    fields that somebody set.
    """

    min_workers: Count | None = None
    max_workers: Count | None = None
    max_worker_memory: Positive | None = None
    batch_size: Positive = 1
    max_batch_delay: Count = 100
    response_timeout: Positive = 120
    startup_timeout: Positive = 120
    max_retry_timeout_in_sec: Count = 300
    client_timeout_in_mills: Count = 0
    job_queue_size: Positive = 100
    use_job_ticket: Switch = False
    batching_policy: Policy = "dynamic"
    isolate_batch_errors: Switch = True
    continuous_batching: Switch = False
    stream_batching: Switch = False
    async_communication: Switch = False
    max_concurrent: Positive = 64
    sequence_batching: Switch = False
    sequence_max_idle_msec: Count = msgspec.field(default=0, name="sequenceMaxIdleMSec")
    sequence_timeout_msec: Count = msgspec.field(default=0, name="sequenceTimeoutMSec")
    max_num_sequence: Positive = 1
    max_sequence_job_queue_size: Positive = 1
    device_type: DeviceType | None = None
    device_ids: Ids | None = None
    share_devices: Switch = False
    exclusive_devices: Switch = False
    parallel_type: ParallelType = ""
    parallel_level: Count = 0
    torchrun: Launcher | None = None
    msrun: Launcher | None = None
    parallel: ParallelSplit = ParallelSplit()
    rank_skew_timeout: Seconds = 10.0
    mindspore: MindSporeOptions = MindSporeOptions()
    warmup: Switch | Requests = True
    json_bodies: JsonBodies | None = None
    use_venv: Switch = False
    max_batch_prefill_tokens: Positive | None = None
    max_batch_total_tokens: Positive | None = None
    max_input_tokens: Positive | None = None
    max_total_tokens: Positive | None = None
    block_size: Positive = 16
    cache_memory: Positive | None = None
    cache_fraction: Fraction | None = None
    slot_buckets: Buckets | None = None
    context_buckets: Buckets | None = None
    prefill_buckets: Buckets | None = None
    generation_config: GenerationConfig = "auto"
    tool_parser: ToolParser | None = None
    reasoning_parser: ReasoningParser | None = None
    request_chat_template: Switch = False

    raw: dict[str, Any] = {}
    explicit: frozenset[str] = frozenset()

    @property
    def layout(self) -> ParallelLayout:
        """How many processes and devices one replica has, and how they divide the model."""
        return find_layout(self)

    @property
    def stateful(self) -> bool:
        return self.sequence_batching and self.sequence_max_idle_msec > 0

    def with_overrides(self, **values: Any) -> "ModelConfig":
        """What the management API was asked for beats the file; None is not asked. Raises ConfigError."""
        types = {field.name: field.type for field in msgspec.structs.fields(ModelConfig)}
        given = {k: convert(k, v, types[k]) for k, v in values.items() if v is not None}
        return self._changed(given, self.explicit | given.keys())

    def with_defaults(self, **values: Any) -> "ModelConfig":
        """The server's own defaults fill what nobody set; None is no default. Raises ConfigError."""
        types = {field.name: field.type for field in msgspec.structs.fields(ModelConfig)}
        wanted = {k: v for k, v in values.items() if v is not None and k not in self.explicit}
        return self._changed({k: convert(k, v, types[k]) for k, v in wanted.items()}, self.explicit)

    def _changed(self, values: dict[str, Any], explicit: frozenset[str]) -> "ModelConfig":
        config = msgspec.structs.replace(self, **values, explicit=explicit)
        check(config)
        return config


def load_model_config(path: str | Path) -> tuple[ModelConfig, list[str]]:
    """The file's settings and warnings for its author. Raises ConfigError, which names the file."""
    mapping = read_yaml(Path(path))
    try:
        return parse_model_config({} if mapping is None else mapping)
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def parse_model_config(mapping: Mapping[str, Any]) -> tuple[ModelConfig, list[str]]:
    """The settings in a mapping as YAML gives it, and warnings. Raises ConfigError."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{show(mapping)} is not a mapping of keys to values")
    _check_sendable(mapping)
    warnings: list[str] = []
    values = read_fields(ModelConfig, _settings(mapping), warnings)
    config = ModelConfig(**values, raw=dict(mapping), explicit=frozenset(values))
    return config, warnings + check(config)


def _check_sendable(mapping: Mapping[str, Any]) -> None:
    """The handler gets the whole mapping, over the wire to the worker. Aliases count as often as they are used."""
    count = 0
    for key, top in mapping.items():
        values: list[Any] = [top]
        while values:
            value = values.pop()
            count += 1
            if count > MOST_VALUES:
                raise ConfigError(f"{key}: with its aliases expanded the file holds more than {MOST_VALUES} values")
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise ConfigError(f"{key}: {show(value)} is an integer of more than 64 bits")
            values += value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _settings(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Without free keys that happen to bear the name of a field that is no key."""
    return {key: value for key, value in mapping.items() if key not in ("raw", "explicit")}
