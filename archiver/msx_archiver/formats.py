"""The choices of `msx-archiver`'s options, in a module of their own so that `--help` imports nothing else."""

FORMATS = ("default", "zip-store", "tgz", "no-archive")
RUNTIMES = ("python", "python3", "LSP")
