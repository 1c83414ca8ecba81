"""The spec file of a workflow archive: its models, its functions, and the graph of both (TorchServe's YAML)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from msx_core.names import name_problem
from msx_core.safe_yaml import read_yaml
from msx_core.values import ConfigError, Count, Positive, Text, convert, near_miss, show
from msx_core.workflow_dag import InvalidDag, WorkflowDag

__all__ = ["InvalidDag", "NodeSettings", "WorkflowDag", "WorkflowNode", "WorkflowSpec", "load_workflow_spec"]

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Settings of a node: `max_batch_delay` and `timeout_ms` in ms; `timeout_ms` is for one attempt.

    A node is tried once and `retry_attempts` times more. `batch_size` and `max_batch_delay` that are not given are the
    model's own.
    """

    min_workers: Count = 1
    max_workers: Count | None = None
    batch_size: Positive | None = None
    max_batch_delay: Count | None = None
    retry_attempts: Count = 1
    timeout_ms: Positive = 10_000

    @property
    def most_workers(self) -> int:
        return max(self.min_workers, self.max_workers or 0)


class WorkflowNode(msgspec.Struct, frozen=True, kw_only=True):
    """A model, by the `url` of its archive; without a url, a function of the handler file."""

    name: str
    url: str | None
    settings: NodeSettings


class WorkflowSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`defaults` are the settings of the section `models`; `nodes` are all nodes of the graph."""

    defaults: NodeSettings
    nodes: dict[str, WorkflowNode]
    dag: WorkflowDag

    @property
    def functions(self) -> list[str]:
        return [node.name for node in self.nodes.values() if node.url is None]


_SETTINGS = {field.encode_name: field for field in msgspec.structs.fields(NodeSettings)}
_OF_THE_WORKERS = ("min_workers", "max_workers", "batch_size", "max_batch_delay")


def load_workflow_spec(path: Path) -> tuple[WorkflowSpec, list[str]]:
    """The spec, and warnings for its author.

    Raises InvalidDag for a graph that cannot be run, ConfigError for anything else; both name the file.
    """
    mapping = read_yaml(path)
    try:
        return parse_workflow_spec(mapping)
    except InvalidDag as error:
        raise InvalidDag(f"{error} ({path.name}).") from None
    except ConfigError as error:
        raise ConfigError(f"{path.name}: {error}") from error


def parse_workflow_spec(mapping: Any) -> tuple[WorkflowSpec, list[str]]:
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{show(mapping)} is not a mapping with the keys models and dag")
    models, warnings = mapping.get("models") or {}, _unknown(mapping, ["models", "dag"], "")
    if not isinstance(models, Mapping):
        raise ConfigError(f"models: {show(models)} is not a mapping of settings and models")
    dag = WorkflowDag.of(_graph(mapping.get("dag")))
    given = _settings(models, "models.", warnings, more=[name for name in models if isinstance(models[name], Mapping)])
    nodes = {name: _node(name, models, given, warnings) for name in dag.order}
    return WorkflowSpec(defaults=NodeSettings(**given), nodes=nodes, dag=dag), warnings


def _graph(written: Any) -> dict[str, list[str]]:
    if not isinstance(written, Mapping):
        raise ConfigError(f"dag: {show(written)} is not a mapping of node names to lists of the nodes that follow")
    return {_name(node, "dag"): _following(node, row) for node, row in written.items()}


def _following(node: str, row: Any) -> list[str]:
    if row is not None and not isinstance(row, list):
        raise ConfigError(f"dag.{node}: {show(row)} is not a list of the nodes that follow, like [{show(row)[1:-1]}]")
    return [_name(following, f"dag.{node}") for following in row or []]


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str) or name_problem(f"w__{name}"):
        raise ConfigError(
            f"{where}: {show(name)} is not a name of a node: at most 197 letters, digits, '_', '-' and '.'"
        )
    return name


def _node(name: str, models: Mapping[str, Any], given: dict[str, Any], warnings: list[str]) -> WorkflowNode:
    own = models.get(name)
    if own is not None and (not isinstance(own, Mapping) or name in _SETTINGS):
        raise ConfigError(f"models.{name}: {show(own)} is not a mapping with the key url")
    mine = _settings(own or {}, f"models.{name}.", warnings, more=["url"])
    url = None if own is None or own.get("url") is None else convert(f"models.{name}.url", own["url"], Text)
    if url is None:
        _check_function(name, own)
        given = {key: value for key, value in given.items() if key not in _OF_THE_WORKERS}
    settings = NodeSettings(**{**given, **mine})
    if settings.max_workers is not None and settings.max_workers < settings.min_workers and "max_workers" in mine:
        raise ConfigError(
            f"models.{name}: max-workers {settings.max_workers} is less than min-workers {settings.min_workers}"
        )
    return WorkflowNode(name=name, url=url, settings=settings)


def _check_function(name: str, own: Mapping[str, Any] | None) -> None:
    if not _FUNCTION.fullmatch(name):
        what = "has no url" if own is not None else "is not under models"
        raise ConfigError(f"dag: {name} {what}, and is not a valid name of a function")


def _settings(mapping: Mapping[Any, Any], prefix: str, warnings: list[str], more: list[Any]) -> dict[str, Any]:
    """The settings that are given, by Python name."""
    warnings += _unknown(mapping, [*_SETTINGS, *more], prefix)
    return {
        field.name: convert(prefix + key, mapping[key], field.type)
        for key, field in _SETTINGS.items()
        if mapping.get(key) is not None
    }


def _unknown(mapping: Mapping[Any, Any], known: list[Any], prefix: str) -> list[str]:
    found = []
    for key in mapping:
        if key not in known:
            meant = near_miss(str(key), [name for name in known if isinstance(name, str)])
            hint = f"; did you mean {meant}?" if meant else ""
            found.append(f"{prefix}{key}: is not a known key and is ignored{hint}")
    return found
