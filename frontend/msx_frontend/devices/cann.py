"""NPUs, their driver and CANN. Nothing here starts CANN."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msx_frontend.findings import Finding, failed, ok, warning
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.versions import CANN, DRIVERS, minor, numbers
from msx_frontend.devices.ascend import VISIBLE
from msx_frontend.devices.choose import choose_accelerator

_LONGEST_INFO = 1 << 16
HOME = "ASCEND_HOME_PATH"


def check_ascend(machine: Machine) -> Iterator[Finding]:
    """Without NPUs nothing else of the vendor's is needed."""
    accelerator, devices = choose_accelerator(machine.config.number_of_npu, machine.env)
    real = [device for device in devices if not device.simulated]
    if not real:
        yield _without(machine)
        return
    yield ok("NPUs", f"{len(real)}: {', '.join(sorted({device.name for device in real}))}")
    for id, status in accelerator.status().items():
        if status.healthy is False:
            yield failed(
                "NPUs",
                f"NPU {id} is unhealthy: {status.health}",
                f"`npu-smi info` shows it. Until it is repaired, leave it out of {VISIBLE}.",
            )
    cann = _version(_home(machine) / "compiler" / "version.info")
    yield _cann(machine, cann)
    yield _driver(machine, cann)


def _without(machine: Machine) -> Finding:
    if machine.env.get(VISIBLE) is not None:
        return warning(
            "NPUs",
            f"none, by {VISIBLE}={machine.env[VISIBLE]} or because there are none",
            f"Unset {VISIBLE} to serve on all NPUs of this machine.",
        )
    return ok("NPUs", "none: models run on the CPU")


def _home(machine: Machine) -> Path:
    named = machine.env.get(HOME)
    return Path(named) if named else machine.ascend / "ascend-toolkit" / "latest"


def _cann(machine: Machine, version: str) -> Finding:
    home = _home(machine)
    if not version:
        return failed(
            "CANN",
            f"not found in {home}",
            f"Install CANN {' or '.join(CANN)}, and source its set_env.sh before the server starts.",
        )
    if not machine.env.get(HOME):
        return failed(
            "CANN",
            f"{version} in {home}, but {HOME} is not set",
            f"Run `source {home.parent / 'set_env.sh'}` before the server starts.",
        )
    if minor(version) not in CANN:
        return failed("CANN", f"{version}, which MindSpore 2.10 does not take", f"Install CANN {' or '.join(CANN)}.")
    return ok("CANN", f"{version} in {home}")


def _driver(machine: Machine, cann: str) -> Finding:
    file = machine.ascend / "driver" / "version.info"
    version, beside = _version(file), DRIVERS.get(minor(cann))
    if not version:
        return warning(
            "driver", f"{file} cannot be read", "Install the driver, or mount its folder into the container."
        )
    if beside and numbers(version) < numbers(beside):
        return warning(
            "driver",
            f"{version}, older than {beside}, which the vendor names beside CANN {minor(cann)}",
            f"Update the driver and firmware to {beside} or later, or look for yours in the vendor's table of CANN.",
        )
    return ok("driver", version)


def _version(file: Path) -> str:
    """The value of `Version=`; "" where there is none."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            lines = opened.read(_LONGEST_INFO).splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip() for line in lines if line.startswith("Version=")), "")
