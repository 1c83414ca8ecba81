"""CANN and the driver of Ascend NPUs. Nothing here starts CANN."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msx_frontend.findings import Finding, failed, ok, warning
from msx_frontend.versions import minor, numbers

CANN = ("8.2", "8.3", "8.5", "9.0", "9.1")
"""Versions that MindSpore 2.10 takes, by its own check at the start (mindspore/run_check/_check_version.py)."""

DRIVERS = {"8.2": "25.2", "8.5": "25.2", "9.1": "26.1"}
"""Driver (Ascend HDK) by CANN: the one that the vendor's release notes name beside it (MindIE 2.1.RC1, CANN
8.5.0.alpha001, MindCluster 26.1.0). For 8.3 and 9.0 no note was found: their drivers are not judged."""

VENDOR = Path("/usr/local/Ascend")
"""Folder in which the vendor's packages are installed."""
HOME = "ASCEND_HOME_PATH"
_LONGEST_INFO = 1 << 16


def check_cann(env: Mapping[str, str]) -> Iterator[Finding]:
    """Whether CANN and its driver are there, and fit each other and MindSpore."""
    version = _version(_home(env) / "compiler" / "version.info")
    yield _cann(env, version)
    yield _driver(version)


def _home(env: Mapping[str, str]) -> Path:
    named = env.get(HOME)
    return Path(named) if named else VENDOR / "ascend-toolkit" / "latest"


def _cann(env: Mapping[str, str], version: str) -> Finding:
    home = _home(env)
    if not version:
        return failed(
            "CANN",
            f"not found in {home}",
            f"Install CANN {' or '.join(CANN)}, and source its set_env.sh before the server starts.",
        )
    if not env.get(HOME):
        return failed(
            "CANN",
            f"{version} in {home}, but {HOME} is not set",
            f"Run `source {home.parent / 'set_env.sh'}` before the server starts.",
        )
    if minor(version) not in CANN:
        return failed("CANN", f"{version}, which MindSpore 2.10 does not take", f"Install CANN {' or '.join(CANN)}.")
    return ok("CANN", f"{version} in {home}")


def _driver(cann: str) -> Finding:
    file = VENDOR / "driver" / "version.info"
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
