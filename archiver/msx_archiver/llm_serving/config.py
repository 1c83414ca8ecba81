"""llm-serving's configuration: its yaml, or the `ServingConfig` of a start script.

Members: `config.py` and `configs/` of github.com/mindspore-ai/llm-serving.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.errors import PackError
from msx_core.safe_yaml import read_yaml
from msx_core.validation import wrong_value
from msx_core.values import ConfigError

OPTION = "--llm-serving"
MOST_AGENTS = 1024
_Texts = list[str]
_Ports = list[int]


class _ModelPath(msgspec.Struct):
    prefill_model: _Texts | str = []
    decode_model: _Texts | str = []


class _ModelConfig(msgspec.Struct):
    model_name: str = ""
    max_generate_length: int | None = None
    end_token: int | None = None
    seq_length: list[int] | None = None
    page_attention: bool | None = None
    pad_token_id: int | None = None
    backend: str | None = None


class _Serving(msgspec.Struct):
    agent_ports: _Ports = []
    server_ip: str | None = None
    server_port: int | None = None
    start_device_id: int | None = None


class _Tokenizer(msgspec.Struct):
    vocab_file: str = ""


class LlmServing(msgspec.Struct):
    """The members that mean something here. Others are said by `report`, and have no effect."""

    model_path: _ModelPath = msgspec.field(default_factory=_ModelPath)
    model_config: _ModelConfig = msgspec.field(default_factory=_ModelConfig)
    serving_config: _Serving = msgspec.field(default_factory=_Serving)
    tokenizer: _Tokenizer = msgspec.field(default_factory=_Tokenizer)
    huggingface: str | None = None
    """MSX's own member: a folder of weights, as `--huggingface` names it."""

    @property
    def name(self) -> str:
        return self.model_config.model_name

    @property
    def weights(self) -> Path | None:
        return Path(self.huggingface) if self.huggingface else None

    @property
    def agents(self) -> int:
        """Ranks of the model, each an agent with a port there."""
        return len(self.serving_config.agent_ports)

    @property
    def prefill(self) -> list[str]:
        return _listed(self.model_path.prefill_model)

    @property
    def decode(self) -> list[str]:
        return _listed(self.model_path.decode_model)

    @property
    def address(self) -> str | None:
        """The URL at which its server listens; None where no port is given."""
        port = self.serving_config.server_port
        return None if port is None else f"http://{self.serving_config.server_ip or 'localhost'}:{port}"


def read_config(path: Path) -> tuple[LlmServing, dict[str, Any]]:
    """The configuration, and all members as they stand there. Raises PackError."""
    try:
        given = read_yaml(path)
    except ConfigError as error:
        raise PackError(f"{OPTION}: {error}") from None
    if not isinstance(given, dict):
        raise PackError(f"{OPTION}: {path} is not a mapping of sections, as llm-serving's yaml is.")
    return checked(given, str(path)), given


def checked(given: Mapping[str, Any], source: str) -> LlmServing:
    """Raises PackError."""
    try:
        config = msgspec.convert(dict(given), LlmServing, strict=False)
    except msgspec.ValidationError as error:
        path, expected = wrong_value(error)
        raise PackError(f"{OPTION}: {source}: {path or 'the file'}: {expected}.") from None
    if not config.name:
        raise PackError(f"{OPTION}: {source}: model_config.model_name: needed, and missing: it is the model's name.")
    if config.agents > MOST_AGENTS:
        raise PackError(f"{OPTION}: {source}: serving_config.agent_ports: at most {MOST_AGENTS} agents are allowed.")
    port = config.serving_config.server_port
    if port is not None and not 0 < port < 1 << 16:
        raise PackError(f"{OPTION}: {source}: serving_config.server_port: expected a port from 1 to 65535, not {port}.")
    return config


def _listed(value: _Texts | str) -> list[str]:
    return [value] if isinstance(value, str) and value else list(value)
