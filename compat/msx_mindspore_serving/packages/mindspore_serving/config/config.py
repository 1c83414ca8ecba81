"""`ServingConfig`, the yaml of llm-serving as a dict whose members are attributes, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_core.safe_yaml import read_yaml

from ..server.console import say

_DEFAULTS = {
    "model_config": {
        "batching_strategy": "continuous",
        "current_index": False,
        "page_attention": False,
        "backend": "ge",
    },
    "serving_config": {"agent_ip": "localhost", "server_ip": "localhost", "start_device_id": 0},
}


class ServingConfig(dict[str, Any]):
    """A member that is missing is None as an attribute. Sections are of this class, too."""

    def __init__(self, *files: str) -> None:
        """Raises msx_core.values.ConfigError for a file that is no yaml."""
        super().__init__()
        for file in files:
            if isinstance(file, str) and file.endswith(("yaml", "yml")):
                self._take(read_yaml(Path(file)) or {})

    def _take(self, members: Mapping[str, Any]) -> None:
        for key, value in members.items():
            self[key] = _section(value) if isinstance(value, Mapping) else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]


def check_valid_config(config: ServingConfig) -> bool:
    """Whether the sections are there that a start needs, without which False is returned and the reason printed;
    defaults are set. `huggingface`, a folder of weights, stands for `model_path` and `tokenizer`."""
    needed = ("model_config", "serving_config") if config.huggingface else (*_DEFAULTS, "model_path", "tokenizer")
    for name in needed:
        if not isinstance(config.get(name), Mapping):
            return _says(f"{name}: the section is missing")
    if not config.model_config.get("model_name"):
        return _says("model_config.model_name: needed, and missing")
    for name in ("agent_ports", "server_port"):
        if not config.serving_config.get(name):
            return _says(f"serving_config.{name}: needed, and missing")
    for section, defaults in _DEFAULTS.items():
        for name, value in defaults.items():
            if config[section].get(name) is None:
                config[section][name] = value
    return True


def _says(problem: str) -> bool:
    say(f"ERROR: {problem}")
    return False


def _section(members: Mapping[str, Any]) -> ServingConfig:
    section = ServingConfig()
    section._take(members)
    return section
