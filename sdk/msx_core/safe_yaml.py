"""Reads YAML from untrusted sources: safe tags only, no duplicate keys, errors with file and line, bounded size and
depth."""

from pathlib import Path
from typing import Any

import yaml

try:  # libyaml's loader is some ten times faster, but PyYAML may have been built without it
    from yaml import CSafeLoader as _SafeLoader
except ImportError:
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

from msx_core.values import ConfigError, show

MOST_BYTES = 1 << 20
"""The largest file that is read."""
MOST_NODES = 100_000
"""The most keys and values in a file, and, counted separately, in its merges (`<<`), each of which may be used
again."""
_MOST_KEYS = 10_000  # of one mapping
_MOST_LEVELS = 100
_DEEP = f"is nested more than {_MOST_LEVELS} levels deep"
_LIBYAML_DEEP = "exceeded maximum nesting depth"  # its own limit, 1,000, is met while it looks ahead of its events
_MOST_DIGITS = 100  # of a number; Python's time for many grows with their square
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(_SafeLoader):
    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()
        self._merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """PyYAML's hook for merge keys (`<<`): writes the merged pairs into the node itself, before its own, which
        override them; of a sequence the earlier mappings override the later (yaml.org/type/merge). It is written
        here because PyYAML's own lets the later ones win from 6.0.4 on."""
        if id(node) in self._checked:
            return
        self._checked.add(id(node))
        _refuse_twice(node)
        sources = [source for key, value in node.value if key.tag == _MERGE for source in _sources(node, value)]
        node.value = own = [(key, value) for key, value in node.value if key.tag != _MERGE]
        self._count_merged(node, sources, len(own))
        node.value = [pair for source in sources for pair in source.value] + own
        super().flatten_mapping(node)  # without merges it makes a string of the key `=`

    def _count_merged(self, node: yaml.MappingNode, sources: list[yaml.MappingNode], keys: int) -> None:
        """Counts merged keys before they are copied. What is merged is flattened first, so that all its keys are
        counted."""
        for source in sources:
            self.flatten_mapping(source)
            keys += len(source.value)
            self._merged += len(source.value)
            if keys > _MOST_KEYS:
                raise ConfigError(f"{_line(node)}: has more than {_MOST_KEYS} keys in one mapping")
            if self._merged > MOST_NODES:
                raise ConfigError(f"{_line(node)}: with its merges (<<) the file holds more than {MOST_NODES} keys")

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """PyYAML passes on any exception that Python raises for an impossible number, date or tag."""
        try:
            _refuse_long_number(node)
            return super().construct_object(node, deep)
        except (ConfigError, yaml.YAMLError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
            kind = node.tag.rpartition(":")[2]
            raise ConfigError(f"{_line(node)}: {show(node.value)} cannot be read as {kind}") from exc


def _sources(node: yaml.MappingNode, merged: yaml.Node) -> list[yaml.MappingNode]:
    """The mappings that one `<<` merges, the one that wins last. Raises ConfigError for anything else."""
    found = merged.value[::-1] if isinstance(merged, yaml.SequenceNode) else [merged]
    if not all(isinstance(one, yaml.MappingNode) for one in found):
        raise ConfigError(f"{_line(node)}: a merge (<<) takes a mapping or a list of mappings")
    return list(found)


def _refuse_twice(node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            line = key.start_mark.line + 1
            if key.value in seen:
                raise ConfigError(
                    f"{show(key.value)[1:-1]}: is given twice, in line {seen[key.value]} and in line {line}"
                )
            seen[key.value] = line


def _refuse_long_number(node: yaml.Node) -> None:
    if node.tag in _NUMBERS and isinstance(node, yaml.ScalarNode) and len(node.value) > _MOST_DIGITS:
        raise ConfigError(f"{_line(node)}: {show(node.value)[1:-1]} is a number of more than {_MOST_DIGITS} digits")


def _line(of: yaml.Node | yaml.Event) -> str:
    return f"line {of.start_mark.line + 1 if of.start_mark else '?'}"


def read_yaml(path: Path) -> Any:
    """The one document of the file; None for an empty one. Raises ConfigError, which names the file."""
    try:
        with path.open("rb") as file:
            return parse_yaml(file.read(MOST_BYTES + 1))
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def parse_yaml(text: str | bytes) -> Any:
    """The same for a text. Raises ConfigError."""
    if len(text) > MOST_BYTES:
        raise ConfigError(f"has more than {MOST_BYTES >> 20} MiB, which is the most that is read of a YAML file")
    try:
        aliases = _count(text)
        value = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as exc:
        raise ConfigError(_syntax_error(exc)) from exc
    except RecursionError as exc:
        raise ConfigError("its merges (<<) are chained too deeply") from exc
    if aliases:
        _refuse_bomb(value)
    return value


def _refuse_bomb(value: Any) -> None:
    """A walk through it visits the value of an alias each time that the alias is used, which may never end."""
    count, values = 0, [value]
    while values:
        one = values.pop()
        count += 1
        if count > MOST_NODES:
            raise ConfigError(f"with its aliases expanded it holds more than {MOST_NODES} values")
        values += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _count(text: str | bytes) -> int:
    """Counts aliases and nodes before the loader runs: libyaml's loader recurses in C, and ten thousand levels would
    crash the process. Raises ConfigError."""
    nodes = aliases = 0
    open_nodes: list[int] = []
    """Number of further nodes that each open collection may have."""
    for event in yaml.parse(text, _SafeLoader):
        aliases += isinstance(event, yaml.AliasEvent)
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if nodes > MOST_NODES:
                raise ConfigError(f"has more than {MOST_NODES} keys and values")
            if open_nodes:
                open_nodes[-1] -= 1
                if open_nodes[-1] < 0:
                    raise ConfigError(f"{_line(event)}: has more than {_MOST_KEYS} keys in one mapping")
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append(2 * _MOST_KEYS if isinstance(event, yaml.MappingStartEvent) else MOST_NODES)
            if len(open_nodes) > _MOST_LEVELS:
                raise ConfigError(_DEEP)
        elif isinstance(event, yaml.CollectionEndEvent):
            open_nodes.pop()
    return aliases


def _syntax_error(exc: yaml.YAMLError) -> str:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        if exc.problem == _LIBYAML_DEEP:
            return _DEEP
        mark = exc.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {exc.problem}"
    return f"is not YAML: {' '.join(str(exc).split())}"
