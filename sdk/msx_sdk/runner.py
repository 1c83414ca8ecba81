"""Feed requests to a handler and its results to a sink. The worker and `msx_sdk.testing` share it."""

from msx_core.runner import Alone, AsyncRunner, Conductor, InvalidResult, Runner

__all__ = ["Alone", "AsyncRunner", "Conductor", "InvalidResult", "Runner"]
