"""Chooses the accelerator of this machine. All accelerators are listed here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msx_frontend.devices.accelerator import Accelerator, Device
from msx_frontend.devices.ascend import Ascend
from msx_frontend.devices.none import NoAccelerator
from msx_frontend.devices.nvidia.accelerator import Nvidia
from msx_frontend.devices.settings import AUTO, DeviceSettings, NoDevicesError, UnknownAcceleratorError
from msx_frontend.findings import Finding

KNOWN: tuple[type[Accelerator], ...] = (Ascend, Nvidia)
"""Accelerators in the order of preference."""


class ChosenDevices(NamedTuple):
    """`problems` are those of all kinds; `remarks` are further sentences for the log, without their full stops."""

    accelerator: Accelerator
    devices: Sequence[Device]
    remarks: Sequence[str] = ()
    problems: Sequence[Finding] = ()


class _Found(NamedTuple):
    """Result of looking for the devices of one kind."""

    accelerator: Accelerator
    devices: Sequence[Device]
    problems: Sequence[Finding]


def choose_accelerator(settings: DeviceSettings, env: Mapping[str, str]) -> ChosenDevices:
    """The first allowed accelerator that has devices, with them, at most `limit`. The others are closed.

    Blocks, as `Accelerator.detect` does. Raises UnknownAcceleratorError, and NoDevicesError where `accelerator` names
    one without devices, and none are simulated.
    """
    kinds = accelerators(settings.accelerator)
    if settings.limit == 0 or not kinds:
        return ChosenDevices(NoAccelerator(hidden=visible_variables()), (), list(_not_heeded(settings)))
    found = [_look(kind(settings.limit, env)) for kind in kinds]
    problems = [problem for one in found for problem in one.problems]
    choice = _taken(settings, found)
    for one in found:
        if one.accelerator is not choice.accelerator:
            one.accelerator.close()
    if not choice.devices and settings.accelerator != AUTO:
        raise NoDevicesError(kinds[0], [*(problem.sentence for problem in problems), *_hidden(kinds[0], env)])
    return choice._replace(problems=problems)


def accelerators(name: str = AUTO) -> Sequence[type[Accelerator]]:
    """The kinds that this value of `accelerator` allows, in the order of preference. Raises UnknownAcceleratorError."""
    if name in (AUTO, NoAccelerator.name):
        return KNOWN if name == AUTO else ()
    if named := [kind for kind in KNOWN if kind.name == name]:
        return named
    raise UnknownAcceleratorError(name, [AUTO, *(kind.name for kind in KNOWN), NoAccelerator.name])


def accelerator_of(resource: str) -> type[Accelerator]:
    """The accelerator that Ray calls so; NoAccelerator for another name."""
    return next((kind for kind in KNOWN if kind.resource == resource), NoAccelerator)


def resources_of_devices(name: str = AUTO) -> list[str]:
    """Ray's names of the devices that this value of `accelerator` allows, in the order of preference.

    Raises UnknownAcceleratorError.
    """
    return [kind.resource for kind in accelerators(name)]


def visible_variables() -> frozenset[str]:
    """The variables that name the devices of a process, of all accelerators."""
    return frozenset(kind.visible for kind in KNOWN)


def _look(accelerator: Accelerator) -> _Found:
    devices = accelerator.detect()
    return _Found(accelerator, devices, accelerator.problems())


def _taken(settings: DeviceSettings, found: Sequence[_Found]) -> ChosenDevices:
    """Devices that are there, else simulated ones, else none."""
    have = [one for one in found if one.devices]
    if have:
        return ChosenDevices(have[0].accelerator, have[0].devices, [*_left(have), *_not_heeded(settings, have[0])])
    if settings.simulate:
        accelerator = found[0].accelerator
        return ChosenDevices(accelerator, accelerator.simulated(settings.simulated))
    return ChosenDevices(NoAccelerator(), (), list(_not_simulated(settings)))


def _left(have: Sequence[_Found]) -> Iterator[str]:
    """Devices of a second kind: a server uses one."""
    if len(have) > 1:
        counts = " and ".join(_count(one) for one in have)
        others = ", ".join(f"accelerator={one.accelerator.name} takes the {one.accelerator.title}s" for one in have[1:])
        yield f"a server uses one kind of devices, and here are {counts}: it takes the first; {others}"


def _not_heeded(settings: DeviceSettings, taken: _Found | None = None) -> Iterator[str]:
    if settings.simulate:
        why = f"the server has found {_count(taken)}" if taken else "accelerator=none or number_of_npu=0 allows none"
        yield f"simulate_devices={settings.simulate} has no effect: {why}"


def _not_simulated(settings: DeviceSettings) -> Iterator[str]:
    """Tell those whose servers simulated devices by this key before."""
    if settings.limit:
        yield (
            f"number_of_npu={settings.limit} (number_of_gpu) is the most devices that are used, and none were found: "
            f"{settings.limit} devices are not simulated any more; simulate_devices={settings.limit} does it"
        )


def _hidden(kind: type[Accelerator], env: Mapping[str, str]) -> Iterator[str]:
    if kind.visible in env:
        yield f"{kind.visible} is {env[kind.visible]!r}"


def _count(found: _Found) -> str:
    count, title = len(found.devices), found.accelerator.title
    return f"{count} {title}{'' if count == 1 else 's'}"
