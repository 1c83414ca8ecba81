"""Names of adapters that are loaded while a model runs."""

import re
from collections.abc import Collection

from msx_core.service_errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", re.ASCII)


def check_name(name: str, models: Collection[str]) -> None:
    """Raises BadRequest."""
    if not _NAME.fullmatch(name):
        raise BadRequest(
            f"lora_name: {name[:80]!r} must have 1 to 128 letters, digits, dots, slashes, hyphens and underscores, and "
            "begin with a letter or a digit."
        )
    if name in models:
        raise BadRequest(f"lora_name: {name} is a model of this server: requests by this name would go there.")
