"""The flags of `msx-serve`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    models: tuple[str, ...]
    model_store: Path | None
    workflow_store: Path | None
    plugins_path: str | None
    ts_config: Path | None
    foreground: bool
    ncs: bool
    log_config: Path | None
    enable_model_api: bool | None
    disable_token_auth: bool | None
    servables: tuple[Path, ...] = ()
    huggingface: tuple[str, ...] = ()
    llm_serving: Path | None = None
    engine: str | None = None
    state_dir: Path | None = None
    cluster_address: str | None = None
    settings: tuple[str, ...] = ()
    """`KEY=VALUE` of --set."""
    backup: Path | None = None
    wait: bool = False
    wait_timeout: float = 600.0
    argv: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def overrides(self) -> dict[str, Any]:
        """The flags as fields of ServerConfig. A flag of its own beats --set.

        Raises ServerConfigError for a --set that is not a key and a value.
        """
        from msx_frontend.config.set_flags import values_of_flags  # `--help` and `--version` need no configuration

        own = {
            "model_store": self.model_store,
            "workflow_store": self.workflow_store,
            "state_dir": self.state_dir,
            "plugins_path": self.plugins_path,
            "cluster_address": self.cluster_address,
            "load_models": self.models or None,
            "servables": self.servables or None,
            "huggingface": self.huggingface or None,
            "llm_serving": self.llm_serving,
            "engine": self.engine,
            "log_config": self.log_config,
            "enable_model_api": self.enable_model_api,
            "disable_token_authorization": self.disable_token_auth,
            "snapshots": False if self.ncs else None,
        }
        return {**values_of_flags(self.settings), **{name: value for name, value in own.items() if value is not None}}
