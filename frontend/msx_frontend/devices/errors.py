"""Why a worker group does not get devices or ports: it never can (DeviceError), or not now."""

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
    """The server has fewer than one group needs. `remedy`: more of the sentence."""

    def __init__(self, model_key: str, size: int, count: int, remedy: str = "") -> None:
        super().__init__(f"{model_key} needs {_count(size)}, and this server has {count}{remedy}")


class LoneDeviceError(DeviceError):
    """A process that sees this device sees no other one, and a group needs several."""

    def __init__(self, model_key: str, parallel_type: str, size: int, number: int, id: str) -> None:
        super().__init__(
            f"{model_key} needs {_count(size)} that each of its processes sees (parallelType: {parallel_type}), and a "
            f"process sees device {number} ({id}) alone only: leave out parallelType for one device a worker, or give "
            "this server whole devices"
        )


class DevicesHeldError(RuntimeError):
    """Other workers hold them now, or they are unhealthy; the message names which."""

    def __init__(
        self,
        model_key: str,
        terms: SharingTerms,
        size: int,
        held: Mapping[int, Sequence[str]],
        unhealthy: Mapping[int, str],
    ) -> None:
        """`held`: for each device that it might have, the models that exclude it; `unhealthy`: health, by device."""
        left = sum(not holders and device not in unhealthy for device, holders in held.items())
        have = f"{left or 'none'} of {_count(len(held))} {'are' if left > 1 else 'is'} left for it"
        by_models = {device: holders for device, holders in held.items() if device not in unhealthy}
        why = ", ".join(filter(None, [_held(by_models), _unhealthy(unhealthy)]))
        remedy = _remedy(terms) if any(by_models.values()) else ""
        super().__init__(f"{model_key} needs {_count(size)}{_kind(terms)}, and {have}: {why}{remedy}")


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
    if terms.most is not None:
        return f" with fewer than {terms.most} of its workers (workersPerDevice)"
    return " that no other group has" if terms.group else ""


def _remedy(terms: SharingTerms) -> str:
    if terms.exclusive or terms.shares or not terms.group:
        return ""
    return "; groups share devices where the configs of both say shareDevices: true"


def _held(holders: Mapping[int, Sequence[str]]) -> str:
    models = {device: " and ".join(dict.fromkeys(holders[device])) for device in holders if holders[device]}
    return _together(models, "{} held by {}")


def _unhealthy(words: Mapping[int, str]) -> str:
    return _together(words, "{} unhealthy ({})")


def _together(words: Mapping[int, str], form: str) -> str:
    """Devices with the same words are named together."""
    devices: dict[str, list[int]] = {}
    for device in sorted(words):
        devices.setdefault(words[device], []).append(device)
    return ", ".join(form.format(_numbers(those), of) for of, those in devices.items())


def _numbers(devices: Sequence[int]) -> str:
    """The numbers with their verb, as in `0 and 1 are`."""
    *others, last = map(str, devices)
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"


def _count(number: int) -> str:
    return f"{number} device" + ("" if number == 1 else "s")
