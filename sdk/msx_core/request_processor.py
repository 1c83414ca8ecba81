"""TorchServe's older interface to one request of a batch: `context.request_processor[idx]`."""

from typing import Any, Protocol


class RequestView(Protocol):
    """The methods of `Context` that a RequestProcessor calls; `idx` is the index of the request in its batch."""

    def get_request_header(self, idx: int, key: str) -> Any: ...

    def get_all_request_header(self, idx: int) -> dict[str, Any]: ...

    def set_response_header(self, idx: int, key: str, value: str) -> None: ...

    def get_response_headers(self, idx: int) -> dict[str, str]: ...

    def set_response_status(self, code: int, phrase: str, idx: int) -> None: ...

    def get_response_status(self, idx: int) -> tuple[int, str]: ...


class RequestProcessor:
    """The context's methods with `idx` under the names of `ts.context.RequestProcessor`."""

    __slots__ = ("_context", "_idx")

    def __init__(self, context: RequestView, idx: int) -> None:
        self._context, self._idx = context, idx

    def get_request_property(self, key: str) -> Any:
        return self._context.get_request_header(self._idx, key)

    def get_request_properties(self) -> dict[str, Any]:
        return self._context.get_all_request_header(self._idx)

    def report_status(self, code: int, reason_phrase: str | None = None) -> None:
        self._context.set_response_status(code, reason_phrase or "", self._idx)

    def get_response_status_code(self) -> int:
        return self._context.get_response_status(self._idx)[0]

    def get_response_status_phrase(self) -> str:
        return self._context.get_response_status(self._idx)[1]

    def add_response_property(self, key: str, value: str) -> None:
        self._context.set_response_header(self._idx, key, value)

    def get_response_headers(self) -> dict[str, str]:
        return self._context.get_response_headers(self._idx)

    def get_response_header(self, key: str) -> str | None:
        return self.get_response_headers().get(key)
