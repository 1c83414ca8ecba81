"""Which listeners speak TLS, and which of them demand certificates of clients: keys `…client_ca`."""

import logging
from collections.abc import Iterator
from pathlib import Path

from msx_core.start_errors import StartError
from msx_frontend.config import ServerConfig
from msx_net.tls.listeners import ServerTls

HTTP, GRPC = ("inference", "management", "metrics"), ("grpc_inference", "grpc_management")

log = logging.getLogger("msx.tls")


class ClientCaError(StartError):
    """Certificates are demanded where clients cannot show one; the message names key and remedy."""


def server_tls(config: ServerConfig) -> ServerTls | None:
    """None where no listener speaks TLS: files that are not needed are not read. Raises ClientCaError, TlsError."""
    authorities, speaking = authority_keys(config), speaking_tls(config)
    return ServerTls(config, speaking, authorities) if speaking else None


def speaking_tls(config: ServerConfig) -> list[str]:
    """The listeners that do, by how their keys begin."""
    found = [name for name in _http(config) if getattr(config, f"{name}_address").scheme == "https"]
    return found + (list(GRPC) if config.enable_grpc_ssl else [])


def authority_keys(config: ServerConfig) -> dict[str, tuple[str, Path]]:
    """Key and file of the client CA of each listener that demands certificates. Raises ClientCaError."""
    speaking = speaking_tls(config)
    for name in (*HTTP, *GRPC):
        if getattr(config, f"{name}_client_ca") is not None and name not in speaking:
            raise ClientCaError(_never_asked(config, name))
    if config.client_ca is not None and not speaking:
        raise ClientCaError(
            "client_ca is set, but no listener speaks TLS, so that clients are not asked for a certificate: write "
            "addresses with https://, or set enable_grpc_ssl=true, in config.properties"
        )
    _warn(config, speaking)
    return dict(_keys(config, speaking))


def _keys(config: ServerConfig, speaking: list[str]) -> Iterator[tuple[str, tuple[str, Path]]]:
    for name in speaking:
        for key in (f"{name}_client_ca", "client_ca"):
            if (path := getattr(config, key)) is not None:
                yield name, (key, path)
                break


def _http(config: ServerConfig) -> Iterator[str]:
    yield "inference"
    if not config.merged:
        yield "management"
    if config.enable_metrics_api:
        yield "metrics"


def _never_asked(config: ServerConfig, name: str) -> str:
    key = f"{name}_client_ca"
    if name in GRPC:
        return f"{key} is set, but gRPC does not speak TLS: set enable_grpc_ssl=true, or leave {key} out"
    if name == "management" and config.merged:
        return (
            f"{key} is set, but inference and management have one listener ({config.management_address}): set "
            f"inference_client_ca for both, or give management_address a port of its own"
        )
    if name not in _http(config):
        return f"{key} is set, but that listener is switched off: leave it out, or set enable_metrics_api=true"
    address = getattr(config, f"{name}_address")
    return (
        f"{key} is set, but {name}_address ({address}) does not speak TLS: write it with https://, or leave {key} out"
    )


def _warn(config: ServerConfig, speaking: list[str]) -> None:
    """A socket file has an owner and a mode instead."""
    if config.client_ca is None:
        return
    names = [name for name in _http(config) if not getattr(config, f"{name}_address").is_unix] + list(GRPC)
    if plain := [name for name in names if name not in speaking]:
        log.warning("client_ca: these listeners do not speak TLS and demand no certificate: %s", ", ".join(plain))
