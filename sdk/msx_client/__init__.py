"""The client of MSX servers: predictions, tensors, streams, texts and management, over HTTP and gRPC.

    from msx_client import Client

    with Client("http://127.0.0.1:8080") as client:
        print(client.predict("echo", {"a": 1}))

What a name needs is imported when it is first used: `import msx_client` loads no HTTP library and no gRPC.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msx_client.async_client import AsyncClient as AsyncClient
    from msx_client.async_jobs import AsyncJob as AsyncJob
    from msx_client.async_jobs import AsyncJobs as AsyncJobs
    from msx_client.async_models import AsyncModels as AsyncModels
    from msx_client.client import Client as Client
    from msx_client.errors import ConflictError as ConflictError
    from msx_client.errors import ConnectionLostError as ConnectionLostError
    from msx_client.errors import DeadlineError as DeadlineError
    from msx_client.errors import ForbiddenError as ForbiddenError
    from msx_client.errors import ModelFailedError as ModelFailedError
    from msx_client.errors import MsxError as MsxError
    from msx_client.errors import NotFoundError as NotFoundError
    from msx_client.errors import NotServedError as NotServedError
    from msx_client.errors import RequestError as RequestError
    from msx_client.errors import TooManyRequestsError as TooManyRequestsError
    from msx_client.errors import UnauthorizedError as UnauthorizedError
    from msx_client.errors import UnavailableError as UnavailableError
    from msx_client.errors import UnreachableError as UnreachableError
    from msx_client.jobs import Job as Job
    from msx_client.jobs import Jobs as Jobs
    from msx_client.models import Models as Models
    from msx_client.texts import ChatReply as ChatReply
    from msx_client.texts import Completion as Completion
    from msx_client.texts import Ranked as Ranked
    from msx_client.texts import TextPiece as TextPiece

_MODULES = {
    "AsyncClient": "async_client",
    "AsyncJob": "async_jobs",
    "AsyncJobs": "async_jobs",
    "AsyncModels": "async_models",
    "Client": "client",
    "Job": "jobs",
    "Jobs": "jobs",
    "Models": "models",
    **dict.fromkeys(("ChatReply", "Completion", "Ranked", "TextPiece"), "texts"),
    **dict.fromkeys(
        (
            "ConflictError",
            "ConnectionLostError",
            "DeadlineError",
            "ForbiddenError",
            "ModelFailedError",
            "MsxError",
            "NotFoundError",
            "NotServedError",
            "RequestError",
            "TooManyRequestsError",
            "UnauthorizedError",
            "UnavailableError",
            "UnreachableError",
        ),
        "errors",
    ),
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
