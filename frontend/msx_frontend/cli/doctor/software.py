"""Python and the packages in it."""

import platform
import socket
import sys
from collections.abc import Iterator

from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.config.pythons import named_interpreters
from msx_frontend.environments.interpreter import UnfitInterpreter
from msx_frontend.findings import Finding, failed, ok, warning
from msx_frontend.versions import PACKAGES, PYTHON
from msx_net.connections.listen import NO_NAME

CONNECT_LIMIT = 3.0
"""Seconds."""


def check_python(machine: Machine) -> Iterator[Finding]:
    found = f"{platform.python_version()}, {sys.executable}"
    if PYTHON.has(platform.python_version()):
        yield ok("Python", found)
    else:
        yield failed("Python", found, f"Install MSX in a Python {PYTHON}.")


def check_interpreters(machine: Machine) -> Iterator[Finding]:
    """Other interpreters, by their names: models without `python` do without them."""
    paths = named_interpreters(machine.config)
    for name, found in machine.interpreters.items():
        if isinstance(found, UnfitInterpreter):
            remedy = f"Models with `python: {name}` cannot be served until it can: mend it, or change the key pythons."
            yield failed("interpreters", f"{name}: {paths[name]} {found}", remedy)
        else:
            yield ok("interpreters", f"{name}: {found}")


def check_mindspore(machine: Machine) -> Iterator[Finding]:
    """NumPy with it: MindSpore's C modules are compiled against NumPy 1."""
    mindspore = machine.package("mindspore")
    if mindspore is None:
        yield warning(
            "MindSpore",
            "not installed: only handlers that do without it can be served",
            'Run `pip install "msx-serve[mindspore]"` in this Python.',
        )
        return
    yield _judged("MindSpore", "mindspore", mindspore)
    if numpy := machine.package("numpy"):
        yield _judged("NumPy", "numpy", numpy)


def _judged(check: str, package: str, version: str) -> Finding:
    wanted = PACKAGES[package]
    if wanted.has(version):
        return ok(check, version)
    return warning(
        check, f"{version}, which MSX was not tested with", f'Run `pip install "{package}{wanted}"` in this Python.'
    )


def check_ray(machine: Machine) -> Iterator[Finding]:
    version, address = machine.package("ray"), machine.config.cluster_address
    if address is None:
        yield ok("Ray", "not needed: cluster_address is not set")
    elif version is None:
        yield failed(
            "Ray",
            f"not installed, and cluster_address is {address}",
            'Run `pip install "msx-serve[ray]"` in this Python, or leave out cluster_address.',
        )
    elif not PACKAGES["ray"].has(version):
        yield failed("Ray", version, f'Run `pip install "ray[default]{PACKAGES["ray"]}"` here and on each node.')
    elif problem := _unreachable(str(address)):
        yield failed("Ray", problem, "Start Ray there (`ray start --head`), open its port, or set cluster_address.")
    else:
        yield ok("Ray", f"{version}, for the cluster at {address}")


def _unreachable(address: str) -> str:
    """Why nothing answers there; "" where something does, or where Ray finds the address itself."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_LIMIT).close()
    except OSError as error:
        return f"nothing answers at {address}: {error.strerror or error}"
    except UnicodeError:
        return f"nothing answers at {address}: {NO_NAME}"
    return ""
