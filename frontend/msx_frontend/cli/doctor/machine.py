"""Machine that the checks look at."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from msx_frontend.assembly.instance import InstanceInfo
from msx_frontend.config.server_config import ServerConfig


@dataclass(frozen=True)
class Machine:
    config: ServerConfig = field(default_factory=ServerConfig)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    running: tuple[InstanceInfo, ...] = ()
    killed: tuple[InstanceInfo, ...] = ()

    def package(self, name: str) -> str | None:
        """Its version; None where it is not installed. Imports nothing of it."""
        try:
            return version(name)
        except PackageNotFoundError:
            return None
