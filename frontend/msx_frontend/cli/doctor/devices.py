"""The devices of the machine, and what their vendor's software lacks."""

from collections.abc import Iterator, Mapping, Sequence

from msx_frontend.assembly.devices import choose_devices
from msx_frontend.cli.device_table import count_errors
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.devices import choose
from msx_frontend.devices.accelerator import Accelerator, Device, DeviceStatus
from msx_frontend.devices.none import NoAccelerator
from msx_frontend.devices.settings import AcceleratorError
from msx_frontend.findings import Finding, failed, ok, warning


def check_devices(machine: Machine) -> Iterator[Finding]:
    """Check nothing of a vendor where there are no devices."""
    try:
        choice = choose_devices(machine.config, machine.env)
    except AcceleratorError as error:
        yield failed("devices", str(error), "The start ends with this sentence.")
        return
    try:
        yield from _found(choice, machine)
    finally:
        choice.accelerator.close()


def _found(choice: choose.ChosenDevices, machine: Machine) -> Iterator[Finding]:
    accelerator = choice.accelerator
    real = [device for device in choice.devices if not device.simulated]
    yield from choice.problems
    yield from (warning("devices", remark, "The server starts, and says so in its log.") for remark in choice.remarks)
    if machine.config.accelerator == NoAccelerator.name:
        yield ok("devices", f"none, by accelerator={accelerator.name}: models run on the CPU")
        return
    if not real:
        yield from (_without(kind, machine) for kind in choose.accelerators(machine.config.accelerator))
        return
    names = ", ".join(sorted({device.name for device in real}))
    yield ok(f"{accelerator.title}s", f"{len(real)}: {names}{_of_container(accelerator, machine)}")
    statuses = accelerator.status()
    yield from (problem for problem in accelerator.problems() if problem not in choice.problems)
    yield from _unhealthy(accelerator, statuses)
    yield from _conditions(accelerator, real, statuses)
    yield from accelerator.check_software(machine.worker_packages())


def _of_container(kind: Accelerator | type[Accelerator], machine: Machine) -> str:
    """Choice of the container's runtime, which decides which devices are there at all."""
    given = machine.env.get(kind.container) if kind.container else None
    return "" if given is None else f"; {kind.container}={given}, which the container's runtime reads"


def _conditions(
    accelerator: Accelerator, devices: Sequence[Device], statuses: Mapping[str, DeviceStatus]
) -> Iterator[Finding]:
    """Temperatures and memory errors, by the server's numbers, where the driver gives them."""
    known = ((number, _condition(statuses.get(device.id, DeviceStatus()))) for number, device in enumerate(devices))
    if told := [f"{number}: {condition}" for number, condition in known if condition]:
        yield ok(f"{accelerator.title}s", "; ".join(told))


def _condition(status: DeviceStatus) -> str:
    errors = f"ECC errors: {count_errors(status.memory_errors) or 'none'}" if status.memory_errors else ""
    warmth = "" if status.temperature is None else f"{status.temperature} °C"
    return ", ".join(filter(None, [warmth, errors]))


def _unhealthy(accelerator: Accelerator, statuses: Mapping[str, DeviceStatus]) -> Iterator[Finding]:
    for id, status in statuses.items():
        if status.healthy is False:
            yield failed(
                f"{accelerator.title}s",
                f"{accelerator.title} {id} is unhealthy: {status.health}",
                f"`{accelerator.tool}` shows it. Until it is repaired, leave it out of {accelerator.visible}.",
            )


def _without(kind: type[Accelerator], machine: Machine) -> Finding:
    """None of this kind was found."""
    check = f"{kind.title}s"
    if (given := machine.env.get(kind.visible)) is not None:
        return warning(
            check,
            f"none, by {kind.visible}={given} or because there are none",
            f"Unset {kind.visible} to serve on all {check} of this machine.",
        )
    return ok(check, f"none: models run on the CPU{_of_container(kind, machine)}")
