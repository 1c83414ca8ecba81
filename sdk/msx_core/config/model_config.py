"""The settings in a model-config.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from msx_core.config.checks import check
from msx_core.config.env import environment_of
from msx_core.config.keys import ModelKeys
from msx_core.config.layout import ParallelLayout, find_layout, find_nodes
from msx_core.config.sections import read_fields
from msx_core.config.stages import Pipeline, read_pipeline
from msx_core.config.torchserve_vllm import implied
from msx_core.values import ConfigError, convert, show

MOST_VALUES = 100_000
"""The most values in a model-config.yaml."""


class ModelConfig(ModelKeys, frozen=True, kw_only=True, rename="camel"):
    """The settings of one model version.

    `raw` is the file's whole mapping (a handler's `context.model_yaml_config`); `explicit` holds the names of the
    fields that the file or a request gives.
    """

    raw: dict[str, Any] = {}
    explicit: frozenset[str] = frozenset()

    @property
    def layout(self) -> ParallelLayout:
        """How many processes and devices one replica has, and how they divide the model."""
        return find_layout(self)

    @property
    def nodes(self) -> int:
        """Number of machines that a group is on, with equally many ranks each; 1: nothing is said of it."""
        return find_nodes(self)

    @property
    def pipeline(self) -> Pipeline | None:
        """Its stages, each with its whole settings; None for a model without stages."""
        return read_pipeline(self, [])

    def environment(self, place: int) -> dict[str, str]:
        """Variables that `env:` adds for the worker at this place, from 0."""
        return environment_of(self.env, place)

    @property
    def file_type(self) -> type["ModelConfig"]:
        return ModelConfig

    def of_stage(self, values: dict[str, Any], raw: dict[str, Any]) -> "ModelConfig":
        """These settings with those of a stage in their place. Raises ConfigError."""
        without = {"stages": None, "routes": None, "raw": raw}
        return self._changed({**without, **values}, self.explicit - without.keys() | values.keys())

    def with_overrides(self, **values: Any) -> "ModelConfig":
        """The settings that the management API was asked for replace those of the file; None means not asked. Raises
        ConfigError."""
        types = {field.name: field.type for field in msgspec.structs.fields(ModelConfig)}
        given = {k: convert(k, v, types[k]) for k, v in values.items() if v is not None}
        return self._changed(given, self.explicit | given.keys())

    def with_defaults(self, **values: Any) -> "ModelConfig":
        """The server's defaults for keys that are not set; None means that the server has none. Raises ConfigError."""
        types = {field.name: field.type for field in msgspec.structs.fields(ModelConfig)}
        wanted = {k: v for k, v in values.items() if v is not None and k not in self.explicit}
        return self._changed({k: convert(k, v, types[k]) for k, v in wanted.items()}, self.explicit)

    def _changed(self, values: dict[str, Any], explicit: frozenset[str]) -> "ModelConfig":
        config = msgspec.structs.replace(self, **values, explicit=explicit)
        check(config)
        read_pipeline(config, [])
        return config


def load_model_config(path: str | Path) -> tuple[ModelConfig, list[str]]:
    """The settings in the file, and warnings for its author. Raises ConfigError, which names the file."""
    from msx_core.safe_yaml import read_yaml  # workers are given what the server has read

    mapping = read_yaml(Path(path))
    try:
        return parse_model_config({} if mapping is None else mapping)
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def parse_model_config(mapping: Mapping[str, Any]) -> tuple[ModelConfig, list[str]]:
    """The settings in a mapping that was read from YAML, and warnings. Raises ConfigError."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{show(mapping)} is not a mapping of keys to values")
    _check_sendable(mapping)
    warnings: list[str] = []
    values = read_fields(ModelConfig, _settings(mapping), warnings)
    config = ModelConfig(**{**implied(mapping, warnings), **values}, raw=dict(mapping), explicit=frozenset(values))
    read_pipeline(config, warnings)
    return config, warnings + check(config)


def _check_sendable(mapping: Mapping[str, Any]) -> None:
    """Refuses a mapping that is too large to be sent to the worker. An alias counts each time that it is used."""
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
    """The mapping without the keys `raw` and `explicit`, which are fields of ModelConfig but not keys of the file."""
    return {key: value for key, value in mapping.items() if key not in ("raw", "explicit")}
