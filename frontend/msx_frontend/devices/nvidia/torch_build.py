"""How the torch of workers was built, by its files: importing it takes seconds, and may load CUDA."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msx_frontend.findings import Finding, ok, warning

CHECK = "torch"
_LONGEST = 1 << 16
_MEMBER = re.compile(r"^(\w+)(?:\s*:[^=\n]*)?\s*=\s*['\"]([^'\"\n]*)['\"]\s*$", re.MULTILINE)
"""A line of torch/version.py: `cuda: Optional[str] = '12.6'`, or None without quotes."""


class TorchBuild(NamedTuple):
    folder: Path
    version: str
    cuda: str
    """Version of CUDA that it was built with; "" without."""


def check_torch(packages: Sequence[Path], driver_cuda: int) -> Iterator[Finding]:
    """`packages`: see `Accelerator.check_software`. `driver_cuda`: the newest CUDA that the driver takes, 12040 for
    12.4; 0 where it is not known."""
    for folder in packages:
        if (build := torch_in(folder)) is not None:
            yield _judged(build, driver_cuda // 1000)


def torch_in(folder: Path) -> TorchBuild | None:
    """None where there is none."""
    try:
        with (folder / "torch" / "version.py").open(encoding="utf-8", errors="replace") as opened:
            members = dict(_MEMBER.findall(opened.read(_LONGEST)))
    except OSError:
        return None
    return TorchBuild(folder, members.get("__version__", "of unknown version"), members.get("cuda", ""))


def _judged(build: TorchBuild, newest: int) -> Finding:
    """A driver takes each minor version of its newest major one, and all before."""
    name, major = f"{build.version} in {build.folder}", build.cuda.partition(".")[0]
    if not build.cuda:
        return warning(
            CHECK,
            f"{name} was built without CUDA: handlers compute on the CPU",
            "Install a build with CUDA there: https://pytorch.org/get-started/locally has the command.",
        )
    if newest and major.isdecimal() and int(major) > newest:
        return warning(
            CHECK,
            f"{name} was built with CUDA {build.cuda}, and the driver takes CUDA {newest} at most",
            f"Update the driver, or install a build with CUDA {newest} there.",
        )
    return ok(CHECK, f"{name}, built with CUDA {build.cuda}")
