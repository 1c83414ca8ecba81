"""A model version in more detail than the describe API gives: what was understood of its archive."""

from typing import Any

import msgspec

from msx_frontend.models.versions.model_version import ModelVersion


def understood(version: ModelVersion) -> dict[str, Any]:
    source = version.source
    return {
        "config": _plain(version.config),
        "manifest": _plain(source.manifest),
        "signature": _plain(version.schema.signature),
        "methods": _plain(version.schema.methods or ()),
        "capabilities": _plain(version.schema.capabilities),
        "paths": version.paths,
    }


def _plain(value: Any) -> Any:
    """Convert for JSON; a value without a JSON form becomes a text, which the page only shows."""
    return msgspec.to_builtins(value, enc_hook=str, str_keys=True)
