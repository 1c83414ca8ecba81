"""Client and server sides of MindSpore Serving's public service, as gRPC's generator makes them."""

from typing import Any

from . import ms_service_pb2

_SERVICE = "mindspore.serving.proto.MSService"
_PREDICT = f"/{_SERVICE}/Predict"
_CALL: dict[str, Any] = {
    "request_serializer": ms_service_pb2.PredictRequest.SerializeToString,
    "response_deserializer": ms_service_pb2.PredictReply.FromString,
}


class MSServiceStub:
    """`channel` is a grpc.Channel, or one of grpc.aio."""

    def __init__(self, channel: Any) -> None:
        self.Predict = channel.unary_unary(_PREDICT, **_CALL)


class MSServiceServicer:
    def Predict(self, request: Any, context: Any) -> Any:
        import grpc

        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        context.set_details("Method not implemented!")
        raise NotImplementedError("Method not implemented!")


def add_MSServiceServicer_to_server(servicer: Any, server: Any) -> None:
    import grpc

    predict = grpc.unary_unary_rpc_method_handler(
        servicer.Predict,
        request_deserializer=ms_service_pb2.PredictRequest.FromString,
        response_serializer=ms_service_pb2.PredictReply.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {"Predict": predict}),))
