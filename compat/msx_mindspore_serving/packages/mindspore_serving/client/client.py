"""A servable's method, called over gRPC."""

from typing import Any

from .._checks import check_str
from ..proto import ms_service_pb2 as messages
from ..proto.ms_service_pb2_grpc import MSServiceStub
from .results import ClientGrpcAsyncError, ClientGrpcAsyncResult, read_reply
from .ssl_config import SSLConfig
from .values import fill_instance

_LARGEST_MESSAGE = 512 * 1024 * 1024


class Client:
    """`address` is `host:port` or `unix:path`; `version_number` 0 is the newest version. Connects at the first call."""

    def __init__(
        self,
        address: str,
        servable_name: str,
        method_name: str,
        version_number: int = 0,
        ssl_config: SSLConfig | None = None,
    ) -> None:
        """Raises RuntimeError for arguments that cannot be, FileNotFoundError for a certificate that is missing."""
        for name, value in (("address", address), ("servable_name", servable_name), ("method_name", method_name)):
            check_str(name, value)
        _check_version(version_number)
        self.address, self.servable_name, self.method_name = address, servable_name, method_name
        self.version_number = version_number
        self.channel = _channel(address, ssl_config)
        self.stub = MSServiceStub(self.channel)

    def infer(self, instances: Any) -> Any:
        """`instances`: a dict from inputs to values, or a list of such. Returns a list of dicts, one an instance, where
        a failed one is {"error": text}; or this alone if the request failed. Raises RuntimeError for values that
        cannot be sent.
        """
        import grpc

        request = self._request(instances)
        try:
            reply = self.stub.Predict(request)
        except grpc.RpcError as error:
            return _grpc_error(error)
        return read_reply(reply, len(request.instances))

    def infer_async(self, instances: Any) -> ClientGrpcAsyncResult | ClientGrpcAsyncError:
        """As `infer`, which is `result()` of what this returns. Raises RuntimeError for values that cannot be sent."""
        import grpc

        request = self._request(instances)
        try:
            return ClientGrpcAsyncResult(self.stub.Predict.future(request), len(request.instances))
        except grpc.RpcError as error:
            return ClientGrpcAsyncError(_grpc_error(error))

    def _request(self, instances: Any) -> Any:
        spec = messages.ServableSpec(
            name=self.servable_name, method_name=self.method_name, version_number=int(self.version_number)
        )
        request = messages.PredictRequest(servable_spec=spec)
        for instance in instances if isinstance(instances, list | tuple) else (instances,):
            fill_instance(request.instances.add(), instance)
        return request


def _check_version(value: Any) -> None:
    if not isinstance(value, int):
        raise RuntimeError(f"Parameter 'version_number' should be int, but actually {type(value)}")
    if value < 0:
        raise RuntimeError("Parameter 'version_number' should be >= 0")


def _channel(address: str, ssl_config: SSLConfig | None) -> Any:
    import grpc

    if ssl_config is not None and not isinstance(ssl_config, SSLConfig):
        raise RuntimeError("The type of ssl_config should be type of SSLConfig")
    options = [
        ("grpc.max_send_message_length", _LARGEST_MESSAGE),
        ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
    ]
    if ssl_config is None:
        return grpc.insecure_channel(address, options=options)
    if (ssl_config.certificate is None) != (ssl_config.private_key is None):
        raise RuntimeError("The certificate and private_key should be passed at the same time")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_read(ssl_config.custom_ca),
        private_key=_read(ssl_config.private_key),
        certificate_chain=_read(ssl_config.certificate),
    )
    return grpc.secure_channel(address, credentials, options=options)


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def _grpc_error(error: Any) -> dict[str, str]:
    status, details = error.code(), error.details()
    print(details, status.name, status.value, sep="\n")  # noqa: T201 - as MindSpore Serving's client does
    return {"error": f"Grpc Error, {status.value}, {details}"}
