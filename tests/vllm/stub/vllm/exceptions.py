from http import HTTPStatus


class VLLMClientError(Exception): ...


class VLLMValidationError(VLLMClientError):
    def __init__(self, message: str, *, parameter: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.parameter, self.value = parameter, value


class GracefulHTTPError(Exception):
    def __init__(self, message: str, http_status: HTTPStatus) -> None:
        super().__init__(message)
        self.message, self.http_status = message, http_status
