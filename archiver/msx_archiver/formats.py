"""The choices of `msx-archiver`'s options, in a module of their own so that `--help` imports nothing else."""

from __future__ import annotations

FORMATS = ("default", "zip-store", "tgz", "no-archive")
RUNTIMES = ("python", "python3", "LSP")
