"""Which NPUs this server has. Nothing here imports MindSpore or starts CANN."""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msx_frontend.devices.npu_smi import ChipKey, ChipStatus, parse_mapping, parse_table

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"

# Where the driver's package puts the tool; services often have a short PATH.
_FOLDERS = ("/usr/local/bin", "/usr/local/sbin")


@dataclass(frozen=True)
class Npu:
    """`logic_id` is the device for CANN; the server's own numbering is the place in its list of NPUs."""

    logic_id: int
    name: str
    key: ChipKey | None = None
    status: ChipStatus | None = field(default=None, compare=False)
    simulated: bool = False


def detect_npus(
    number_of_npu: int | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    dev: Path = Path("/dev"),
    timeout: float = 10.0,
) -> list[Npu]:
    """The NPUs that the server may use, with their present state; blocks for up to `timeout` s for each npu-smi call.

    An inherited ASCEND_RT_VISIBLE_DEVICES limits them, then `number_of_npu` does. On a machine without NPUs, so many
    are simulated; 0 means none anywhere.
    """
    if number_of_npu == 0:
        return []
    found = _from_npu_smi(env, timeout) or _from_device_files(dev)
    if not found:
        return simulate_npus(number_of_npu or 0, env)
    visible = visible_ids(env, {npu.logic_id for npu in found})
    return [npu for npu in found if visible is None or npu.logic_id in visible][:number_of_npu]


def simulate_npus(count: int, env: Mapping[str, str]) -> list[Npu]:
    ids = visible_ids(env, range(1024)) or range(count)
    return [Npu(i, "simulated", simulated=True) for i in ids[:count]]


def visible_ids(env: Mapping[str, str], present: Collection[int]) -> list[int] | None:
    """What CANN makes of ASCEND_RT_VISIBLE_DEVICES: it stops at the first id that is malformed, absent or not
    ascending. None when the variable is not set."""
    text = env.get(VISIBLE)
    if text is None:
        return None
    ids: list[int] = []
    for part in text.split(","):
        if not part.isdecimal() or int(part) not in present or (ids and int(part) <= ids[-1]):
            break
        ids.append(int(part))
    return ids


def _from_npu_smi(env: Mapping[str, str], timeout: float) -> list[Npu]:
    tool = shutil.which("npu-smi", path=os.pathsep.join([env.get("PATH", os.defpath), *_FOLDERS]))
    if tool is None:
        return []
    table = parse_table(_run([tool, "info"], env, timeout))
    mapping = parse_mapping(_run([tool, "info", "-m"], env, timeout))
    if not mapping:  # old tools: the table's order is that of the logic ids
        mapping = {key: (i, status.name) for i, (key, status) in enumerate(table.items())}
    npus = [Npu(logic, name, key, table.get(key)) for key, (logic, name) in mapping.items()]
    return sorted(npus, key=lambda npu: npu.logic_id)


def _run(command: list[str], env: Mapping[str, str], timeout: float) -> str:
    """The tool's output, or nothing: it fails inside containers that have not been given the driver."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout, env=dict(env), check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _from_device_files(dev: Path) -> list[Npu]:
    """/dev/davinci0, …; /dev/davinci_manager is the driver itself."""
    numbers = sorted(int(n) for path in dev.glob("davinci*") if (n := path.name.removeprefix("davinci")).isdecimal())
    return [Npu(number, "davinci") for number in numbers]
