"""Names and versions of models: they become parts of paths, of URLs and of folders."""

from __future__ import annotations

from msx_frontend.errors import InvalidModel
from msx_sdk.manifest import MODEL_NAME, MODEL_VERSION


def check_names(name: str, version: str) -> None:
    """Raises InvalidModel."""
    if not MODEL_NAME.fullmatch(name):
        raise InvalidModel(
            f"Model name {name!r} cannot be served: expected letters, digits, '_', '-' and '.', and a letter or digit "
            "first."
        )
    if not MODEL_VERSION.fullmatch(version):
        raise InvalidModel(
            f"Version {version!r} of model {name} cannot be served: expected letters, digits, '_', '-', '+' and '.', "
            f"a letter or digit first, and not 'all', which means every version."
        )
