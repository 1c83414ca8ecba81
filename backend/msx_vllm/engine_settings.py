"""Settings that an engine is started with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class EngineSettings(NamedTuple):
    folder: Path
    """The model in Hugging Face's layout."""
    arguments: Mapping[str, Any]
    """Members of `AsyncEngineArgs`, by names with underscores."""
    adapters: Mapping[str, Path]
    """Folders of adapters, by their names."""
    chat_template: str | None = None
    """The source of a template in the place of the model's own."""
