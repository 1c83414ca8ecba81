"""Errors of batches."""

from msx_core.service_errors import BadRequest, ResourceNotFound, ServiceError

NO_BATCHES = "Batches are not run: jobs=true in the server's config.properties does it."


class UnknownBatch(ResourceNotFound):
    def __init__(self, id: str) -> None:
        super().__init__(
            f"There is no batch {id[:100]!r}: it was not made, is not kept any more, or another key made it."
        )


class TooManyBatches(BadRequest):
    def __init__(self, most: int) -> None:
        super().__init__(f"A key has at most {most} batches that run or are kept (max_batches): cancel some, or wait.")


class BatchHasEnded(ServiceError):
    """Too late to cancel it."""

    status, type, grpc_code = 409, "ConflictException", "ABORTED"

    def __init__(self, id: str, state: str) -> None:
        super().__init__(f"The batch {id} is {state}: there is nothing to cancel.")
