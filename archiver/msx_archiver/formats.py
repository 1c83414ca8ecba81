"""What the options of `msx-archiver` may be, apart so that its `--help` needs nothing else."""

from __future__ import annotations

FORMATS = ("default", "zip-store", "tgz", "no-archive")
RUNTIMES = ("python", "python3", "LSP")
