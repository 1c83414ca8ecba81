"""Reading YAML from strangers: safe tags only, no key twice, errors with file and line."""

from pathlib import Path
from typing import Any

import yaml

try:  # libyaml's loader is some ten times faster, but PyYAML may have been built without it
    from yaml import CSafeLoader as _SafeLoader
except ImportError:
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

from msx_sdk.values import ConfigError

_MOST_KEYS = 10_000  # of one mapping; nested merges can make billions from a few lines
_MOST_LEVELS = 100


class _Loader(_SafeLoader):
    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """PyYAML's hook for merge keys (`<<`), which later writes the merged pairs into the node itself."""
        if id(node) not in self._checked:
            _refuse_twice(node)
            self._checked.add(id(node))
        super().flatten_mapping(node)
        if len(node.value) > _MOST_KEYS:
            raise ConfigError(f"line {node.start_mark.line + 1}: has more than {_MOST_KEYS} keys in one mapping")


def _refuse_twice(node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            line = key.start_mark.line + 1
            if key.value in seen:
                raise ConfigError(f"{key.value}: is given twice, in line {seen[key.value]} and in line {line}")
            seen[key.value] = line


def read_yaml(path: Path) -> Any:
    """The one document of the file; None for an empty one. Raises ConfigError."""
    try:
        return parse_yaml(path.read_bytes())
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def parse_yaml(text: str | bytes) -> Any:
    try:
        _limit_depth(text)
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as exc:
        raise ConfigError(_syntax_error(exc)) from exc


def _limit_depth(text: str | bytes) -> None:
    """libyaml's loader recurses in C: some ten thousand levels would end the process by a segfault."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_LEVELS:
            raise ConfigError(f"is nested more than {_MOST_LEVELS} levels deep")


def _syntax_error(exc: yaml.YAMLError) -> str:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {exc.problem}"
    return f"is not YAML: {' '.join(str(exc).split())}"
