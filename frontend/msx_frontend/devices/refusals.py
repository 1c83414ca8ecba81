"""Why a worker group does not get devices: never, or not now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msx_frontend.devices.sharing_terms import SharingTerms


class DeviceError(RuntimeError):
    """Devices that a worker group cannot have on this server."""


class UnknownDeviceError(DeviceError):
    """`deviceIds` names a device that this server does not have."""

    def __init__(self, device_ids: Sequence[int], count: int) -> None:
        absent = next(device for device in device_ids if device >= count)
        has = "device 0 only" if count == 1 else f"devices 0 to {count - 1}"
        super().__init__(f"deviceIds: {list(device_ids)} names device {absent}, and this server has {has}")


class TooFewDevicesError(DeviceError):
    """The server has fewer than one group needs."""

    def __init__(self, model_key: str, size: int, count: int) -> None:
        super().__init__(f"{model_key} needs {_count(size)}, and this server has {count}")


class DevicesHeldError(RuntimeError):
    """Others hold them now; the message names them."""

    def __init__(self, model_key: str, terms: SharingTerms, size: int, held: Mapping[int, Sequence[str]]) -> None:
        """`held`: of each device that it might have, the models that keep it off."""
        left = sum(not holders for holders in held.values())
        have = f"{left or 'none'} of {_count(len(held))} {'are' if left > 1 else 'is'} left for it"
        super().__init__(f"{model_key} needs {_count(size)}{_kind(terms)}, and {have}: {_held(held)}{_remedy(terms)}")


class NoPortsError(DeviceError):
    """The host has no port for the collectives of any group."""

    def __init__(self, model_key: str, limit: str) -> None:
        super().__init__(f"{model_key} needs ports for its collectives: {limit}")


class PortsHeldError(RuntimeError):
    """Other groups, or other processes of the host, have all ports that its collectives could use."""

    def __init__(self, model_key: str, limit: str) -> None:
        super().__init__(
            f"{model_key} needs ports for its collectives, and all are taken: {limit}; it starts when some are free"
        )


def _kind(terms: SharingTerms) -> str:
    if terms.exclusive:
        return " of its own"
    return " that no other group has" if terms.group else ""


def _remedy(terms: SharingTerms) -> str:
    if terms.exclusive or terms.shares or not terms.group:
        return ""
    return "; groups share devices where the configs of both say shareDevices: true"


def _held(holders: Mapping[int, Sequence[str]]) -> str:
    """Devices that the same models hold are named together."""
    devices: dict[str, list[int]] = {}
    for device in sorted(holders):
        if holders[device]:
            devices.setdefault(" and ".join(dict.fromkeys(holders[device])), []).append(device)
    return ", ".join(
        f"{_numbers(held)} {'is' if len(held) == 1 else 'are'} held by {of}" for of, held in devices.items()
    )


def _numbers(devices: Sequence[int]) -> str:
    *others, last = map(str, devices)
    return f"{', '.join(others)} and {last}" if others else last


def _count(number: int) -> str:
    return f"{number} device" + ("" if number == 1 else "s")
