"""Settings and streams that must be there before the libraries that read them are imported."""

import os
import sys

_STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_WRONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def prepare_process() -> None:
    """gRPC must not handle forks, because this process starts every worker."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def open_streams() -> None:
    """Have stdin, stdout and stderr, which a caller may have closed: else what is opened next gets their numbers, and
    each child's own streams take their place."""
    for number, (name, flags, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None and os.open(os.devnull, flags) == number:
            os.set_inheritable(number, True)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process
            setattr(sys, name, stream)
