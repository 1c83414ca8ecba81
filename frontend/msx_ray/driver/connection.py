"""The driver's connection with Ray: opened once, and looked at without waiting for Ray's own time-outs."""

import platform
import socket
import time

import ray

LOOK = 1.0
"""Seconds that the head has to accept a connection."""
PAUSE = 1.0


class NotConnectedError(Exception):
    """The message is a sentence."""


class RayConnection:
    """`address`: auto, host:port of Ray's head, or ray://host:port of its client server."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.gcs = address
        """Where the head answers: host:port."""
        self._missed = 0

    def open(self) -> str:
        """Returns Ray's version. Raises NotConnectedError."""
        if self._address != "auto" and not _answers(self._address.removeprefix("ray://")):
            raise NotConnectedError(
                f"Nothing answers at {self._address} (cluster_address): is Ray's head running there?"
            )
        try:
            ray.init(
                self._address, namespace="msx", log_to_driver=False, logging_level="ERROR", configure_logging=False
            )
        except ConnectionError as error:
            raise NotConnectedError(
                f"There is not a Ray cluster at {self._address} (cluster_address): {_line(error)}"
            ) from None
        except RuntimeError as error:
            raise NotConnectedError(self._mismatch(error)) from None
        if not self._address.startswith("ray://"):
            self.gcs = ray.get_runtime_context().gcs_address
        else:
            self.gcs = self._address.removeprefix("ray://")
        return str(ray.__version__)

    def slow(self, seconds: float) -> str:
        """A sentence for a connection that takes so long."""
        return (
            f"The cluster at {self._address} (cluster_address) accepts connections, and has not let this server in for "
            f"{seconds:g} s: is it Ray's head, and does it know itself by an address that this machine reaches?"
        )

    def problem(self) -> str:
        """A sentence when the head has not answered twice in a row; ""."""
        self._missed = 0 if _answers(self.gcs) else self._missed + 1
        return (
            f"Ray's head at {self.gcs} does not answer: nothing can be placed until it is back."
            if self._missed > 1
            else ""
        )

    def wait_until_back(self) -> None:
        while not _answers(self.gcs):
            time.sleep(PAUSE)

    def _mismatch(self, error: Exception) -> str:
        mine = f"Ray {ray.__version__} with Python {platform.python_version()}"
        return (
            f"The cluster at {self._address} (cluster_address) cannot be used by this server, which has {mine}: "
            f"{_line(error)} Use the same Ray and Python on all machines, and start Ray on this one, too "
            "(ray start --address), or connect by ray://host:10001."
        )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), LOOK):
            return True
    except (OSError, ValueError):
        return False


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:600]
