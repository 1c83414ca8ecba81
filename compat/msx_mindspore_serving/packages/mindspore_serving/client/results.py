"""Results of a call: at once, or later."""

from typing import Any

from .values import read_instance


def read_reply(reply: Any, count: int) -> Any:
    """A list of dicts, one an instance; {"error": text} for a failed one, or instead of the list for a failed request.

    Raises RuntimeError for a reply whose errors fit neither.
    """
    errors = reply.error_msg
    if not errors:
        return [read_instance(one) for one in reply.instances]
    if len(errors) == 1 and not reply.instances:
        return _error(errors[0])
    if len(errors) != count or len(reply.instances) != count:
        raise RuntimeError(
            f"error msg result size {len(errors)} not be 0, 1 or length of instances {len(reply.instances)}"
        )
    pairs = zip(errors, reply.instances, strict=True)
    return [_error(error) if error.error_code else read_instance(one) for error, one in pairs]


def _error(message: Any) -> dict[str, str]:
    return {"error": message.error_msg.decode(errors="replace")}


class ClientGrpcAsyncResult:
    """The result of `Client.infer_async`, which may not be there yet."""

    def __init__(self, result: Any, count: int) -> None:
        """`result` is a future of gRPC; `count` the number of instances."""
        self._result, self._count = result, count

    def result(self) -> Any:
        """Waits for the reply. Raises grpc.RpcError for a call that failed."""
        return read_reply(self._result.result(), self._count)


class ClientGrpcAsyncError:
    """The result of a call that could not be begun."""

    def __init__(self, result_error: dict[str, str]) -> None:
        self._result_error = result_error

    def result(self) -> dict[str, str]:
        return self._result_error
