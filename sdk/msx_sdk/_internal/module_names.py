"""Names that the modules of an archive cannot have, because others are imported by them."""

from __future__ import annotations

import sys

_OF_WORKERS = frozenset({"mindspore", "msgspec", "msx_backend", "msx_protocol", "msx_sdk", "numpy"})


def hidden_by(stem: str) -> str | None:
    """The module that a file `{stem}.py` at the root of an archive would hide from the worker; None for a free name."""
    if stem in sys.stdlib_module_names:
        return f"Python's module {stem}"
    return f"the package {stem}" if stem in _OF_WORKERS else None
