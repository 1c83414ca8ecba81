"""Checks of the system: ports, descriptors, room on disk, the time."""

import ctypes
import errno
import os
import resource
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

from msx_archiver.sizes import MIB, human
from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.config.state_folder import can_be_made, state_folder
from msx_frontend.findings import Finding, failed, ok, warning
from msx_net.connections.descriptors import HOW_TO_RAISE, LEAST_DESCRIPTORS, Descriptors
from msx_net.listening.address import Address

FEW_DESCRIPTORS = 4096
LITTLE_ROOM, NO_ROOM = 2048 * MIB, 100 * MIB
_TIME_ERROR = 5
"""adjtimex(2): the clock is not synchronised."""


def check_ports(machine: Machine) -> Iterator[Finding]:
    for key, address in _addresses(machine.config).items():
        if not address.is_unix and address.port != 0:
            yield _port(machine, key, address)


def _addresses(config: ServerConfig) -> dict[str, Address]:
    """Addresses by the key that changes each. Listeners with the same address share it."""
    every = {
        "inference_address": config.inference_address,
        "management_address": config.management_address,
        "metrics_address": config.metrics_address,
        "grpc_inference_port": Address("http", config.grpc_inference_address, config.grpc_inference_port),
        "grpc_management_port": Address("http", config.grpc_management_address, config.grpc_management_port),
    }
    return {key: address for key, address in every.items() if key not in _repeated(every)}


def _repeated(every: dict[str, Address]) -> set[str]:
    keys = list(every)
    return {key for at, key in enumerate(keys) if every[key] in [every[other] for other in keys[:at]]}


def _port(machine: Machine, key: str, address: Address) -> Finding:
    problem = _refusal(address)
    text = str(address).partition("://")[2]
    if problem is None:
        return ok("ports", f"{text} is free ({key})")
    if problem == errno.EADDRINUSE:
        for info in machine.running:
            if text in _held(info):
                return _held_by(machine, info, text, key)
        return failed("ports", f"{text} is in use by another process", f"Stop it (`ss -ltnp` names it), or set {key}.")
    return failed(
        "ports", f"{text} cannot be used: {os.strerror(problem)}", f"Set {key} to one that this user may use."
    )


def _held_by(machine: Machine, info: InstanceInfo, text: str, key: str) -> Finding:
    """A server of this model store or state folder is the one that is checked, else a start here would fail."""
    folder, store = state_folder(machine.config).path, machine.config.model_store.resolve()
    if info.state_folder == folder or Path(info.model_store) == store:
        return ok("ports", f"{text} is held by the MSX that runs as pid {info.pid} ({key})")
    other = f"{text} is held by another MSX, pid {info.pid}, whose state is in {info.state_folder}"
    remedy = f"Stop it (`msx-serve --stop --state-dir {shlex.quote(str(info.state_folder))}`), or set {key}."
    return failed("ports", other, remedy)


def _held(info: InstanceInfo) -> set[str]:
    names = ("inference", "management", "metrics", "grpc_inference", "grpc_management")
    return {str(getattr(info, name)).rpartition("//")[2] for name in names}


def _refusal(address: Address) -> int | None:
    """The number of the error that a listener there would meet."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    default = 443 if address.scheme == "https" else 80
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address.host, default if address.port is None else address.port))
    except socket.gaierror:  # its numbers are not those of the system
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno
    return None


def check_descriptors(machine: Machine) -> Iterator[Finding]:
    """The server raises its soft limit to the hard one."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = Descriptors(hard if hard != resource.RLIM_INFINITY else 1 << 30)
    found = f"{limit.limit} open files"
    if limit.limit >= FEW_DESCRIPTORS:
        yield ok("file limits", found)
        return
    told = failed if limit.limit < LEAST_DESCRIPTORS else warning
    yield told(
        "file limits",
        f"{found}, which leaves {limit.for_connections} for connections",
        f"Raise the hard limit to {FEW_DESCRIPTORS} or more: {HOW_TO_RAISE}.",
    )


def check_disk(machine: Machine) -> Iterator[Finding]:
    folder = state_folder(machine.config).path
    if not can_be_made(folder):
        yield failed("disk", f"{folder} cannot be written by this user", "Set state_dir to a folder that can be.")
        return
    found = os.statvfs(_existing(folder))
    free = found.f_bavail * found.f_frsize
    if found.f_files > 0 and found.f_favail == 0:
        yield failed("disk", f"no room for another file in {folder}", "Remove files there, or set state_dir.")
    elif free < NO_ROOM:
        yield failed("disk", f"{human(free)} free for {folder}", "Make room there, or set state_dir.")
    elif free < LITTLE_ROOM:
        yield warning(
            "disk", f"{human(free)} free for {folder}", "Unpacked archives need more: make room, or set state_dir."
        )
    else:
        yield ok("disk", f"{human(free)} free for {folder}")


def _existing(folder: Path) -> Path:
    return next(one for one in (folder, *folder.parents) if one.exists())


def check_time(machine: Machine) -> Iterator[Finding]:
    """Nodes, certificates and tokens are judged by the clock."""
    synchronised = _synchronised()
    if synchronised is None:
        yield ok("time", "the system does not say whether its clock is synchronised")
    elif synchronised:
        yield ok("time", "the clock is synchronised")
    else:
        yield warning(
            "time", "the clock is not synchronised", "Start chronyd or systemd-timesyncd (`timedatectl set-ntp true`)."
        )


def _synchronised() -> bool | None:
    """Ask adjtimex(2), which with modes 0 only reads. None where it cannot be asked."""
    asked = ctypes.create_string_buffer(512)  # struct timex has 208 bytes
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(asked)
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
