"""How texts that are too long are cut."""

from msx_core.generation import Capabilities
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.models.versions.model_version import ModelVersion


def is_left(direction: str) -> bool:
    """Whether the beginning of a text is cut. Raises WrongParameter."""
    if direction.lower() not in ("left", "right"):
        raise WrongParameter("truncation_direction", f"Left or Right is needed, not {direction}")
    return direction.lower() == "left"


def limit(version: ModelVersion, truncate: bool | None) -> int | None:
    """The most tokens of a text that may be cut."""
    return (version.schema.capabilities or Capabilities()).max_input_tokens if truncate else None
