"""An error that is not a ServiceError is a bug of the server: it is logged once, and the client is told."""

import logging

from msx_core.service_errors import Bug, ServiceError


def reported_to(log: logging.Logger, error: Exception, request_id: str) -> ServiceError:
    """Error for the client. A bug of the server is logged here, with its traceback."""
    if isinstance(error, ServiceError):
        return error
    log.error("a bug of the server", exc_info=error, extra={"request_id": request_id})
    return Bug(error)
