"""The chart of deploy/helm, rendered with values files as `helm template` does it, by the subset of go_templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.deploy.go_templates import Templates

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "msx-serve"
VALUES = {
    "default": None,
    **{path.stem: path for path in sorted((CHART / "ci").glob("*.yaml"))},
    "groups": DEPLOY / "kuberay" / "values.yaml",
}
RELEASE, NAMESPACE = "msx", "models"

Manifest = dict[str, Any]


def values_of(file: Path | None) -> dict[str, Any]:
    """Values of values.yaml under those of `file`, checked against the schema as Helm does it."""
    merged: dict[str, Any] = _merged(
        yaml.safe_load((CHART / "values.yaml").read_text()), yaml.safe_load(file.read_text()) if file else {}
    )
    check(merged)
    return merged


def check(values: dict[str, Any]) -> None:
    """Raises jsonschema.ValidationError."""
    jsonschema.validate(values, yaml.safe_load((CHART / "values.schema.json").read_text()))


def rendered(values: dict[str, Any]) -> list[Manifest]:
    templates, root = _templates(), _root(values)
    texts = [templates.render(path.name, root) for path in _sources() if path.suffix == ".yaml"]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def notes(values: dict[str, Any]) -> str:
    return _templates().render("NOTES.txt", _root(values))


def _sources() -> list[Path]:
    return sorted((CHART / "templates").iterdir())


def _templates() -> Templates:
    return Templates({path.name: path.read_text() for path in _sources()})


def _root(values: dict[str, Any]) -> dict[str, Any]:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return {
        "Values": _floats(values),
        "Release": {"Name": RELEASE, "Namespace": NAMESPACE, "Service": "Helm"},
        "Chart": {name[0].upper() + name[1:]: value for name, value in chart.items()},
        "Files": {f"files/{path.name}": path.read_text() for path in (CHART / "files").iterdir()},
    }


def _floats(value: Any) -> Any:
    """Helm reads numbers as JSON does."""
    if isinstance(value, dict):
        return {key: _floats(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_floats(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {
        key: _merged(base[key], over[key]) if key in base and key in over else over.get(key, base.get(key))
        for key in {**base, **over}
    }
