"""The devices of the machine, and what their vendor's software lacks."""

from collections.abc import Iterator

from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.devices import choose
from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.findings import Finding, failed, ok, warning


def check_devices(machine: Machine) -> Iterator[Finding]:
    """Without devices nothing of a vendor is needed."""
    accelerator, devices = choose.choose_accelerator(machine.config.number_of_npu, machine.env)
    real = [device for device in devices if not device.simulated]
    if not real:
        yield from (_without(kind, machine) for kind in choose.KNOWN)
        return
    names = ", ".join(sorted({device.name for device in real}))
    yield ok(f"{accelerator.title}s", f"{len(real)}: {names}")
    yield from _unhealthy(accelerator)
    yield from accelerator.check_software()


def _unhealthy(accelerator: Accelerator) -> Iterator[Finding]:
    for id, status in accelerator.status().items():
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
    return ok(check, "none: models run on the CPU")
