"""How a call ends."""

from __future__ import annotations

import logging
from typing import NamedTuple

from msx_frontend.errors import Bug, ServiceError
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.metadata import Metadata
from msx_frontend.net.grpc.refused import Refused
from msx_frontend.net.grpc.service import Service
from msx_frontend.net.grpc.status import metadata

log = logging.getLogger("msx.grpc")


class Outcome(NamedTuple):
    code: Code
    message: str = ""
    metadata: Metadata = ()
    """What goes with the status, beside the id of the request."""
    response: bytes | None = None
    """Of a unary method that has succeeded."""


CANCELLED = Outcome(Code.CANCELLED, "The call was cancelled.")
DEADLINE_EXCEEDED = Outcome(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
"""The words are grpc's."""


def failure(error: Exception, service: Service, request_id: str) -> Outcome:
    """What the client is told of an error. What is neither a ServiceError nor Refused is a bug of the server, which is
    logged here.
    """
    if isinstance(error, Refused):
        return Outcome(error.code, error.message)
    return _told(reported(error, request_id), service)


def reported(error: Exception, request_id: str) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    log.error("a bug of the server", exc_info=error, extra={"request_id": request_id})
    return Bug(error)


def _told(error: ServiceError, service: Service) -> Outcome:
    return Outcome(service.code_of(error), service.details_of(error), metadata(error))
