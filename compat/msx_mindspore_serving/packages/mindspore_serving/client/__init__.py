"""The client of servables over gRPC."""

from .client import Client
from .results import ClientGrpcAsyncError, ClientGrpcAsyncResult
from .ssl_config import SSLConfig

__all__ = ["Client", "ClientGrpcAsyncError", "ClientGrpcAsyncResult", "SSLConfig"]
