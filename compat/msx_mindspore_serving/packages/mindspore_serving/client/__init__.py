"""The clients of servables over gRPC, and of language models over HTTP."""

from .client import Client
from .client_api import MindsporeInferenceClient
from .client_utils import ClientRequest, Parameters, Response, StreamResponse, Token
from .results import ClientGrpcAsyncError, ClientGrpcAsyncResult
from .ssl_config import SSLConfig

__all__ = [
    "Client",
    "ClientGrpcAsyncError",
    "ClientGrpcAsyncResult",
    "ClientRequest",
    "MindsporeInferenceClient",
    "Parameters",
    "Response",
    "SSLConfig",
    "StreamResponse",
    "Token",
]
