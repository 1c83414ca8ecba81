"""Settings that must be in the environment before the libraries that read them are imported."""

import os


def prepare_process() -> None:
    """gRPC must not handle forks, because this process starts every worker."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
