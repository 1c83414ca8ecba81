"""TLS between the server and agents: the side that listens has a certificate, the one that dials knows its pin."""

import asyncio
import os
import socket
import ssl
import sys

from msx_core.module_command import module_command
from msx_ray.certificate import Identity, identity_of, pin_of

KEEPALIVE_IDLE, KEEPALIVE_EVERY, KEEPALIVE_PROBES = 5, 3, 3
UNACKNOWLEDGED = 15.0
"""Seconds after which a connection ends whose other side acknowledges nothing: its machine or the link is gone."""


class PinError(ConnectionError):
    """Another certificate than the expected one."""


async def new_identity() -> Identity:
    """Raises OSError."""
    command = module_command(sys.executable, "msx_ray.certificate")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    pem, _ = await process.communicate()
    if process.returncode:
        raise OSError(f"the certificate for the cluster could not be made (exit code {process.returncode})")
    return identity_of(pem)


def server_context(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # a connection is never resumed
    fd = os.memfd_create("identity", os.MFD_CLOEXEC)  # the library reads files only
    try:
        os.write(fd, identity.pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return context


def client_context() -> ssl.SSLContext:
    """Whoever uses it must compare the pin (`check_pin`) before anything is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def check_pin(transport: asyncio.BaseTransport, pin: str) -> None:
    """Raises PinError."""
    der = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if der is None or pin_of(der) != pin:
        raise PinError("the certificate is not the expected one")


def tune(transport: asyncio.BaseTransport) -> None:
    """No delay, and an end when the other machine is gone."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_EVERY),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", int(UNACKNOWLEDGED * 1000)),
    ):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
