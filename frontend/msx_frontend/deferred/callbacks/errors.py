"""Errors of callbacks."""

from msx_core.service_errors import BadRequest, ServiceUnavailable


class WrongCallback(BadRequest):
    """The URL of a callback is none that the server may ask."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"X-Msx-Callback: {reason}.")


class TooManyCallbacks(ServiceUnavailable):
    def __init__(self, most: int, owner: str = "") -> None:
        """`owner`: the name of the key whose share is used up."""
        whose = f" of the key {owner}" if owner else ""
        part = ", of which one key may have half" if owner else ""
        super().__init__(
            f"{most} callbacks{whose} wait for their jobs or receivers, and no more may (max_callbacks{part})."
        )
