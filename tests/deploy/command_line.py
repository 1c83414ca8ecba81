"""The settings of a server that a container's arguments start, in the environment of the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msx_frontend.cli.main import main
from msx_frontend.cli.options import Options
from msx_frontend.config.load import GivenSettings, load_settings
from tests.deploy.dockerfile import of


def image_environment() -> dict[str, str]:
    """Variables of the image's ENV, without those that need the base's."""
    pairs = (pair.partition("=") for line in of("ENV") for pair in line.split())
    return {name: value for name, _, value in pairs if "$" not in value}


def settings_of(container: Mapping[str, Any], places: Mapping[str, str]) -> GivenSettings:
    """`places` are folders of this machine for those of the container."""
    word, *args = (_moved(one, places) for one in container["args"])
    assert word == "msx-serve"
    assert "command" not in container, "the image's entry point sets CANN's variables"
    context = main.make_context(word, args)
    given = {name: value for name, value in context.params.items() if name in Options.__dataclass_fields__}
    options = Options(**given)
    own = {one["name"]: one["value"] for one in container.get("env", ()) if "value" in one}
    return load_settings(options.overrides(), options.ts_config, {**image_environment(), **own})


def _moved(text: str, places: Mapping[str, str]) -> str:
    for place, here in _longest_first(places):
        text = text.replace(place, here)
    return text


def _longest_first(places: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return sorted(places.items(), key=lambda pair: -len(pair[0]))
