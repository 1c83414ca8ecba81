"""The configuration with which a server last came up, in the place of a file with which one has not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_frontend.config.load import HERE, GivenSettings, load_settings
from msx_frontend.config.properties import PropertiesError, read_file


def last_settings(fd: int, cli: Mapping[str, Any], ts_config: Path | None, env: Mapping[str, str]) -> GivenSettings:
    """`fd` is that of the content, and is closed. Raises ServerConfigError."""
    with open(fd, "rb") as last:
        settings = load_settings(cli, ts_config, env, last.read())._replace(is_last=True)
    file = settings.file
    if settings.content == _content(file):
        return settings
    notice = (
        f"{file or HERE}: is not read, because a server with it did not come up. The settings are those "
        "with which the server came up last: correct the file, and order msx-serve restart"
    )
    return settings._replace(notices=[notice, *settings.notices])


def _content(file: Path | None) -> bytes | None:
    """Content of the file as it is now, or of none; None where it cannot be read."""
    try:
        return b"" if file is None else read_file(file)
    except PropertiesError:
        return None
