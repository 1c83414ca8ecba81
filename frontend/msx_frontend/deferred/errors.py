"""Errors of jobs."""

from msx_core.service_errors import BadRequest, ResourceNotFound, ServiceError

NO_JOBS = "Requests are not deferred: jobs=true in the server's config.properties does it."


class UnknownJob(ResourceNotFound):
    def __init__(self, id: str) -> None:
        super().__init__(f"There is no job {id[:100]!r}, or another key made it.")


class JobGone(ServiceError):
    """Its reply is not kept any more."""

    status, type, grpc_code = 410, "GoneException", "NOT_FOUND"


class ReplyNotKept(ServiceError):
    """There is no room for the reply of a job that ran. Sizes in bytes."""

    status, type, grpc_code = 507, "InsufficientStorageException", "RESOURCE_EXHAUSTED"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"The job ran, and its reply of {size} bytes is not kept: all jobs take at most {most} bytes (jobs_size). "
            "Delete jobs that were read, and send the request again."
        )


class JobRanAgain(ServiceError):
    """The events that a client has read are of an earlier run."""

    status, type, grpc_code = 409, "ConflictException", "ABORTED"

    def __init__(self) -> None:
        super().__init__("The job runs again from its beginning: ask for its events without Last-Event-ID.")


class KeyInUse(ServiceError):
    """A request with the same Idempotency-Key is being accepted."""

    status, type, grpc_code = 409, "ConflictException", "ABORTED"

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key is being accepted at this moment: ask again.")


class KeyOfAnotherBody(ServiceError):
    status, type, grpc_code = 422, "BadRequestException", "FAILED_PRECONDITION"

    def __init__(self) -> None:
        super().__init__("The Idempotency-Key was sent with another body before: send a new key with a new body.")


class WrongIdempotencyKey(BadRequest):
    def __init__(self, most: int) -> None:
        super().__init__(f"Idempotency-Key: expected 1 to {most} characters.")
