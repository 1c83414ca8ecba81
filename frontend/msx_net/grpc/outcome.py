"""How a call ends."""

import logging
from functools import partial
from typing import NamedTuple

from msx_core.service_errors import ServiceError
from msx_net.bugs import reported_to
from msx_net.grpc.codes import Code
from msx_net.grpc.metadata import Metadata
from msx_net.grpc.refused import Refused
from msx_net.grpc.service import Service
from msx_net.grpc.status import metadata

reported = partial(reported_to, logging.getLogger("msx.grpc"))
"""Error for a client of gRPC."""


class Outcome(NamedTuple):
    code: Code
    message: str = ""
    metadata: Metadata = ()
    """Metadata besides the id of the request."""
    response: bytes | None = None
    """Response of a unary method that has succeeded."""


CANCELLED = Outcome(Code.CANCELLED, "The call was cancelled.")
DEADLINE_EXCEEDED = Outcome(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
"""The words are grpc's."""


def failure(error: Exception, service: Service, request_id: str) -> Outcome:
    """Outcome of an error; one that is neither a ServiceError nor Refused is a bug of the server and logged here."""
    if isinstance(error, Refused):
        return Outcome(error.code, error.message)
    return _told(reported(error, request_id), service)


def _told(error: ServiceError, service: Service) -> Outcome:
    return Outcome(service.code_of(error), service.details_of(error), metadata(error))
