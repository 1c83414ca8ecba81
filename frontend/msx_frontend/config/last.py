"""The configuration with which a server last came up, in the place of a file with which one has not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_frontend.config.load import GivenSettings, configuration_file, content_of, load_settings


def last_settings(fd: int, cli: Mapping[str, Any], ts_config: Path | None, env: Mapping[str, str]) -> GivenSettings:
    """`fd` is that of the content, and is closed. Raises ServerConfigError."""
    try:
        settings = load_settings(cli, ts_config, {**env, "TS_CONFIG_FILE": f"/proc/self/fd/{fd}"})
    finally:
        os.close(fd)
    file = configuration_file(ts_config, env)
    if content_of(file) == settings.content:
        return settings._replace(file=file)
    notice = (
        f"{file or 'config.properties'}: is not read, because a server with it did not come up. The settings are those "
        "with which the server came up last: correct the file, and order msx-serve restart"
    )
    return settings._replace(file=file, notices=[notice, *settings.notices])
