"""A process of the user 65534, to whom everything is read-only but one folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

_MOUNTS = (
    'mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && cd / && exec "$@"'
)
"""Commands that make file systems read-only; those on file systems of their own, such as /dev/shm, stay as they are."""

_READS = "+dac_read_search"
"""It may read what it could read anywhere else: the interpreter of these tests may lie in a user's home."""


def confined(writable: Path) -> list[str]:
    """Beginning of its command line. Skips where the test may not do that."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))):
        pytest.skip("only root may make file systems read-only for a process")
    writable.chmod(0o777)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    rights = ["--bounding-set", f"-all,{_READS}", "--inh-caps", f"-all,{_READS}", "--ambient-caps", f"-all,{_READS}"]
    return ["unshare", "-m", "sh", "-c", _MOUNTS, "sh", str(writable), *user, *rights]
