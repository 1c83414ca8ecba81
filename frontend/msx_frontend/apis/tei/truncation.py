"""How texts that are too long are cut, and what is not served of it."""

from __future__ import annotations

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.models.model_version import ModelVersion
from msx_sdk.generation import Capabilities


def check_unserved(direction: str) -> None:
    """Raises WrongParameter for what would give other numbers than were asked for."""
    if direction.lower() != "right":
        raise WrongParameter("truncation_direction", f"only Right is served, not {direction}: cut the text yourself")


def limit(version: ModelVersion, truncate: bool | None) -> int | None:
    """The most tokens of a text that may be cut."""
    return (version.capabilities or Capabilities()).max_input_tokens if truncate else None
