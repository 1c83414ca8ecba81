"""`stages:` and `routes:`: a model whose parts run in processes of their own, as a chain or a graph."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol, cast

import msgspec
from msgspec import Meta

from msx_core.config.keys import ModelKeys
from msx_core.config.sections import DeviceType, read_fields
from msx_core.config.stage_kinds import declare, kinds_of
from msx_core.config.stage_routes import StageRoute, check_graph, find_routes
from msx_core.values import ConfigError, Count, Text, convert, show

MOST_STAGES = 32
ROOM = 128
"""Messages between two stages, unless `edgeCapacity` says otherwise. At least two batches of the reader fit."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OWN = ("handler", "serializedFile", "modelFile", "workers", "device", "from")
_TOP = ("stages", "routes", "env")
"""Keys of the file that a handler's `context.model_yaml_config` does not have in a stage."""

Device = Annotated[Literal["none"] | DeviceType, Meta(description="one of none, npu, gpu, cpu")]


class Settings(Protocol):
    """A ModelConfig, as this module sees it."""

    @property
    def stages(self) -> Any: ...

    @property
    def routes(self) -> Any: ...

    @property
    def raw(self) -> dict[str, Any]: ...

    @property
    def file_type(self) -> type[msgspec.Struct]:
        """Type that a file's keys are read as."""

    def of_stage(self, values: dict[str, Any], raw: dict[str, Any]) -> Any:
        """These settings with those of a stage in their place. Raises ConfigError."""


class StageConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`config` has the keys above `stages:` and the stage's own. `before`: the stages whose results it is given."""

    name: str
    handler: str
    serialized_file: str | None
    model_file: str | None
    before: tuple[str, ...]
    config: Any  # a ModelConfig

    @property
    def edge_capacity(self) -> int:
        """The most messages on each edge that leads to it."""
        keys: ModelKeys = self.config
        return keys.edge_capacity or max(ROOM, 2 * keys.batch_size)

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the archive that it names; a handler without a suffix `.py` may be a built-in one."""
        file = self.handler.partition(":")[0]
        named = (file if file.endswith(".py") else None, self.serialized_file, self.model_file)
        return tuple(one for one in named if one)


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """`routes` by name or path; the first one answers requests that name none."""

    stages: dict[str, StageConfig]
    routes: dict[str, StageRoute]

    @property
    def main(self) -> StageRoute:
        return next(iter(self.routes.values()))

    def passes_on(self, stage: str) -> bool:
        """Another stage of any route is given its results."""
        return any(stage in route.before and stage != route.last for route in self.routes.values())


def read_pipeline(config: Settings, warnings: list[str]) -> Pipeline | None:
    """None without `stages:`. Raises ConfigError."""
    if config.stages is None:
        if config.routes is not None:
            raise ConfigError("routes: has no effect without stages: it names the first and the last stage of a route")
        return None
    written = config.stages
    if not isinstance(written, Mapping) or not written:
        raise ConfigError(f"stages: {show(written)} is not a mapping of names to stages")
    if len(written) > MOST_STAGES:
        raise ConfigError(f"stages: has {len(written)} stages, and at most {MOST_STAGES} are allowed")
    stages: dict[str, StageConfig] = {}
    previous: tuple[str, ...] = ()
    for name, mapping in written.items():
        stages[name] = _stage(config, name, mapping, previous, warnings)
        previous = (name,)
    before = {name: stage.before for name, stage in stages.items()}
    check_graph(before)
    routes = declare(find_routes(before, config.routes), {name: stage.config for name, stage in stages.items()})
    pipeline = Pipeline(stages={name: _told(stage, routes) for name, stage in stages.items()}, routes=routes)
    _check_kinds(pipeline)
    return pipeline


def _told(stage: StageConfig, routes: Mapping[str, StageRoute]) -> StageConfig:
    """The stage with the `bodies` and `replies` that a route says."""
    kinds = {key: kind for key, kind in kinds_of(stage.name, routes).items() if stage.config.raw.get(key) != kind}
    if not kinds:
        return stage
    return msgspec.structs.replace(stage, config=stage.config.of_stage(kinds, {**stage.config.raw, **kinds}))


def _stage(config: Settings, name: Any, mapping: Any, previous: tuple[str, ...], warnings: list[str]) -> StageConfig:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"stages: {show(name)} is not a name of a stage: at most 64 letters, digits, '_' and '-'")
    prefix = f"stages.{name}."
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"stages.{name}: {show(mapping)} is not a mapping with the key handler")
    for key in (*_TOP[:2], "python", "aliases", "compression"):
        if key in mapping:
            raise ConfigError(f"{prefix}{key}: a stage has no {key} of its own; {key}: stands beside stages:")
    if mapping.get("handler") is None:
        raise ConfigError(f"stages.{name}: has no handler: give a file of the archive or a built-in handler")
    texts = {key: _text(prefix, mapping, key) for key in ("handler", "serializedFile", "modelFile")}
    return StageConfig(
        name=name,
        handler=texts["handler"] or "",
        serialized_file=texts["serializedFile"],
        model_file=texts["modelFile"],
        before=_before(prefix, mapping, previous),
        config=_config(config, prefix, mapping, warnings),
    )


def _config(config: Settings, prefix: str, mapping: Mapping[Any, Any], warnings: list[str]) -> Any:
    settings = {key: value for key, value in mapping.items() if key not in (*_OWN, "raw", "explicit")}
    values = read_fields(config.file_type, settings, warnings, prefix)
    if (workers := mapping.get("workers")) is not None:
        if twice := [key for key in ("minWorkers", "maxWorkers") if mapping.get(key) is not None]:
            raise ConfigError(f"{prefix}workers and {prefix}{twice[0]} both say how many there are: give one of them")
        values["min_workers"] = values["max_workers"] = convert(f"{prefix}workers", workers, Count)
    if (device := mapping.get("device")) is not None:
        if mapping.get("deviceType") is not None:
            raise ConfigError(f"{prefix}device and {prefix}deviceType both choose the kind of device: give one of them")
        kind = convert(f"{prefix}device", device, Device)
        values["device_type"] = "cpu" if kind == "none" else kind
    above = {key: value for key, value in config.raw.items() if key not in _TOP}
    own = {key: value for key, value in mapping.items() if key not in (*_OWN, "env")}
    try:
        return config.of_stage(values, {**above, **own})
    except ConfigError as error:
        raise ConfigError(f"{prefix[:-1]}: {error}") from None


def _text(prefix: str, mapping: Mapping[Any, Any], key: str) -> str | None:
    value = mapping.get(key)
    return None if value is None else cast("str", convert(prefix + key, value, Text))


def _before(prefix: str, mapping: Mapping[Any, Any], previous: tuple[str, ...]) -> tuple[str, ...]:
    """Stages whose output it takes: by default the one above it; `from: []` begins a route."""
    if mapping.get("from") is None:
        return previous
    written = mapping["from"]
    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"{prefix}from: {show(written)} is not a name of a stage, or a list of names")
    return tuple(dict.fromkeys(names))


def _check_kinds(pipeline: Pipeline) -> None:
    """Stages answer requests one by one and whole, but for those that end every route they are in."""
    for name, stage in pipeline.stages.items():
        config: ModelKeys = stage.config
        if config.splits_instances:
            raise ConfigError("splitInstances: a model with stages has one job a request: leave it out")
        if config.sequence_batching:
            raise ConfigError(
                f"stages.{name}: sequenceBatching does not work in a stage, because a sequence stays with one worker "
                "and stages do not; serve it as a model without stages"
            )
        for key, given in (
            ("continuousBatching", config.continuous_batching),
            ("streamBatching", config.stream_batching),
        ):
            if given and pipeline.passes_on(name):
                raise ConfigError(
                    f"stages.{name}: {key} works in a last stage alone, because a stage's whole result goes to the next"
                )


__all__ = ["MOST_STAGES", "Pipeline", "StageConfig", "StageRoute", "read_pipeline"]
