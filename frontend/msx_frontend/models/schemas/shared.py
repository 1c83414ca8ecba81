"""Schemas that a description refers to by `$ref`."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

PLACE = "#/components/schemas/"


class SharedSchemas:
    """`$defs` of schemas become components: a reference in a document is relative to the whole of it."""

    def __init__(self, schemas: Mapping[str, Schema] | None = None) -> None:
        """`schemas` are those that the document has."""
        self.schemas = dict(schemas or {})

    def share(self, schema: Mapping[str, Any], prefix: str) -> Schema:
        """The schema, referring to components whose names begin with `prefix`, as their titles do."""
        own = {name: value for name, value in schema.items() if name != "$defs"}
        names = {name: self._name(f"{prefix}{name}", value) for name, value in schema.get("$defs", {}).items()}
        for name, value in schema.get("$defs", {}).items():
            self.schemas[names[name]] = _titled(_referring(value, names), names[name])
        made: Schema = _titled(_referring(own, names), prefix)
        return made

    def _name(self, wanted: str, value: object) -> str:
        """A name that nothing else has."""
        name, number = wanted, 2
        while name in self.schemas:
            name, number = f"{wanted}{number}", number + 1
        self.schemas[name] = {}  # it is taken
        return name


def _titled(schema: Any, title: str) -> Any:
    """Give it this title, if it has one: clients make names of classes from titles, and a handler's class may have
    any."""
    return {**schema, "title": title} if isinstance(schema, Mapping) and "title" in schema else schema


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _reference(one, names) if key == "$ref" else _referring(one, names) for key, one in value.items()}
    return [_referring(one, names) for one in value] if isinstance(value, list) else value


def _reference(target: Any, names: Mapping[str, str]) -> Any:
    """Rename a reference to a component; others, which a handler may have written, are left as they are."""
    name = names.get(target.rpartition("/")[2]) if isinstance(target, str) else None
    return _referring(target, names) if name is None else f"{PLACE}{name}"
