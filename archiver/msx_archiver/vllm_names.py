"""The names in a config file's section `vllm:`, checked by the vLLM of an interpreter."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from msx_archiver.errors import PackError
from msx_core import interpreter_probe

if TYPE_CHECKING:
    from msx_core.config import ModelConfig

LIMIT = 60
"""Seconds."""
PROGRAM = "import json; print(json.dumps(vllm_arguments()))"


def check_vllm_names(config: ModelConfig, python: Path | None) -> None:
    """Checks nothing where the interpreter has no vLLM and none was named. Raises PackError for a name that its vLLM
    does not know, and for a named interpreter without vLLM."""
    from msx_core.config import ConfigError
    from msx_core.config.vllm_section import check_names

    if not config.vllm:
        return
    known = interpreter_probe.vllm_arguments() if python is None else _told(python)
    if python is not None and not known:
        raise PackError(f"--python: {python} has no vLLM, which the section vllm: of the config file is for.")
    try:
        if known:
            check_names(config.vllm, known)
    except ConfigError as error:
        raise PackError(str(error)) from None


def _told(python: Path) -> list[str]:
    """Names by a short process of the interpreter, which needs no MSX. Raises PackError."""
    source = Path(interpreter_probe.__file__).read_text()
    program = f"{source.partition('if __name__')[0]}\n{PROGRAM}\n"
    try:
        done = subprocess.run([str(python), "-c", program], capture_output=True, timeout=LIMIT, check=True)
        names: list[str] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise PackError(f"--python: {python} did not end within {LIMIT} s when it was asked for vLLM.") from None
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise PackError(f"--python: {python} cannot be asked for vLLM: {error}") from None
    return names
