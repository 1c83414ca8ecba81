"""Schemas that a description refers to by `$ref`."""

from __future__ import annotations

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
        """The schema, referring to components whose names begin with `prefix`. What is there already is used again.

        The title of a component is its name: generators of clients name classes by it.
        """
        own = {name: value for name, value in schema.items() if name != "$defs"}
        defs: Mapping[str, Any] = schema.get("$defs", {})
        wanted = {name: f"{prefix}{name}" for name in defs}
        known = self._known(defs, wanted)
        names = {name: wanted[name] if name in known else self._name(wanted[name]) for name in defs}
        for name, value in defs.items():
            self.schemas[names[name]] = _titled(_referring(value, names), names[name])
        made: Schema = _referring(own, names)
        return made

    def _known(self, defs: Mapping[str, Any], wanted: Mapping[str, str]) -> set[str]:
        """Those that are components already, with all that they refer to."""
        known = {
            name
            for name, value in defs.items()
            if self.schemas.get(wanted[name]) == _titled(_referring(value, wanted), wanted[name])
        }
        while unsure := {name for name in known if (_referred(defs[name]) & {*defs}) - known}:
            known -= unsure
        return known

    def _name(self, wanted: str) -> str:
        """A name that nothing else has."""
        name, number = wanted, 2
        while name in self.schemas:
            name, number = f"{wanted}{number}", number + 1
        self.schemas[name] = {}  # it is taken
        return name


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _reference(one, names) if key == "$ref" else _referring(one, names) for key, one in value.items()}
    return [_referring(one, names) for one in value] if isinstance(value, list) else value


def _titled(schema: Any, name: str) -> Any:
    return {**schema, "title": name} if isinstance(schema, Mapping) and "title" in schema else schema


def _referred(value: Any) -> set[str]:
    """The last parts of all references in a schema."""
    if isinstance(value, Mapping):
        own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_referred, value.values()))
    return set().union(*map(_referred, value)) if isinstance(value, list) else set()


def _reference(target: Any, names: Mapping[str, str]) -> Any:
    """To a component; others, which a handler may have written, are left as they are."""
    name = names.get(target.rpartition("/")[2]) if isinstance(target, str) else None
    return _referring(target, names) if name is None else f"{PLACE}{name}"
