"""Where NVML, the library of NVIDIA's driver, is on this machine."""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

NAME = "libnvidia-ml.so.1"
PATH = "LD_LIBRARY_PATH"
FOLDERS = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64")
"""Folders of drivers that a loader may not know: WSL's, and the one that Google's Kubernetes nodes mount."""
DRIVER = Path("/dev/nvidiactl")
"""A file of the driver, which a process needs for CUDA, too."""


def library_path(env: Mapping[str, str]) -> str | None:
    """The LD_LIBRARY_PATH with which a process finds NVML; None on a machine without it.

    `env`: the environment that the server has inherited.
    """
    folders = [*filter(None, env.get(PATH, "").split(os.pathsep)), *FOLDERS]
    found = any(Path(folder, NAME).exists() for folder in folders) or _loads()
    return os.pathsep.join(folders) if found else None


def _loads() -> bool:
    """Ask the loader, which alone knows its cache. Nothing of the library is called."""
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return False
    return True
