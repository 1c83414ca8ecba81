"""A server that asks for no keys: which web pages may manage it, and what its start says of that."""

import socket

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.config import ServerConfig
from msx_net.http.cors import Cors
from msx_net.page_guard import PageGuard


def page_guard(config: ServerConfig, cors: Cors) -> PageGuard:
    """The names of the server are those of its addresses, of its machine, and of `allowed_hosts`."""
    addresses = config.inference_address, config.management_address, config.metrics_address
    own = [address.host for address in addresses] + [config.grpc_inference_address, config.grpc_management_address]
    return PageGuard(cors.trusts, [*own, socket.gethostname(), *config.allowed_hosts])


def what_is_open(config: ServerConfig, info: InstanceInfo) -> str:
    """A sentence for the log, and for whoever did not mean to open that much."""
    asked, managed = _any(info.inference, info.grpc_inference), _any(info.management, info.grpc_management)
    code = ", and register models, whose handlers run as its user (enable_model_api=true)"
    others = f", and to those of cors_allowed_origin={config.cors_allowed_origin}" if config.cors_allowed_origin else ""
    return (
        "No request needs a key (disable_token_authorization=true): "
        f"whoever reaches {asked} may use every model, and whoever reaches {managed} may manage this server"
        f"{code if config.enable_model_api else ''}. "
        f"Among web pages management is open to the server's own{others}."
    )


def _any(*addresses: str) -> str:
    return " or ".join(address for address in addresses if address)
