"""`startup_agents`, by which start scripts of llm-serving start a model.

Forms of the call: github.com/mindspore-ai/llm-serving, and the branch r2.1 of mindspore-ai/serving.
"""

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from ..server.console import say
from ..server.script_server import SERVER
from ..server.server_process import ServerError
from ..server.starting import or_stop

__all__ = ["startup_agents"]

_SETTINGS = "config.serving_config"
"""The module of the user that has the settings of a script of 2023."""


class _Queue(Protocol):
    def put(self, item: int, /) -> Any: ...


@or_stop
def startup_agents(*arguments: Any) -> None:
    """Serve the model at its `server_port`, and put each agent's number into the queue when it answers.

    Called with the configuration and the queue; or, as in 2023, with nine arguments, of which paths of the two models
    and the queue are read, and the rest is in the script's own `config/serving_config.py`. Nothing listens at the
    agents' ports. Raises RuntimeError, TypeError for other arguments.
    """
    if len(arguments) == 2:
        config, queue = arguments
    elif len(arguments) == 9:
        config, queue = _config_of_2023(arguments[4], arguments[5]), arguments[8]
    else:
        raise TypeError(f"startup_agents takes (config, startup_queue), or nine arguments, not {len(arguments)}")
    _start(_plain(config), queue)


def _start(config: dict[str, Any], queue: _Queue) -> None:
    serving = config.get("serving_config") or {}
    address = f"{serving.get('server_ip') or 'localhost'}:{serving.get('server_port')}"
    server = SERVER.started()
    try:
        server.ask("load_text", config=config)
        server.ask("open", api="text", address=address, limit=0, tls=None)
    except ServerError as error:
        raise RuntimeError(error.detail) from None
    say(f"the language model answers at {address}")
    for number in range(len(serving.get("agent_ports") or ())):
        queue.put(number)


def _config_of_2023(prefill: Any, decode: Any) -> dict[str, Any]:
    settings = sys.modules.get(_SETTINGS)
    if settings is None:
        raise RuntimeError(f"the script has not imported {_SETTINGS}, which has the settings of its model")
    base, agents = settings.Baseconfig, settings.AgentConfig
    names = ("end_token", "seq_length", "max_generate_length")
    return {
        "model_path": {"prefill_model": prefill, "decode_model": decode},
        "model_config": {"model_name": settings.ModelName, **{name: base[name] for name in names if name in base}},
        "serving_config": {
            "agent_ports": agents["AgentPorts"],
            "start_device_id": agents["device_start"],
            "server_ip": settings.SERVER_APP_HOST,
            "server_port": settings.SERVER_APP_PORT,
        },
        "tokenizer": {"vocab_file": base.get("tokenizer_path", "")},
        "huggingface": getattr(settings, "huggingface", ""),
    }


def _plain(config: Any) -> Any:
    """A configuration as JSON has it."""
    if isinstance(config, Mapping):
        return {str(key): _plain(value) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [_plain(one) for one in config]
    return config
