import pytest

from msx_net.grpc.admission import Admission
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.refused import NotACall
from msx_net.grpc.served import served_methods
from tests.net.grpc.direct.fakes import FakeService

SERVED = served_methods([FakeService().service()], Admission(None), 100)
METHODS = {f"/{one.target}".encode(): one for one in SERVED}


def head(*more: tuple[bytes, bytes], **other: bytes) -> CallHead:
    fields = {b":method": b"POST", b":path": b"/a.Service/Unary", b"content-type": b"application/grpc"}
    fields |= {name.encode().replace(b"_", b"-"): value for name, value in other.items()}
    return CallHead([*fields.items(), (b"te", b"trailers"), *more], METHODS)


def test_a_call() -> None:
    found = head((b"authorization", b"Bearer K"), (b"x-request-id", b"mine"))
    assert found.refused is None
    assert found.served is not None
    assert found.served.target == "a.Service/Unary"
    assert (found.sent_key, found.given_id, found.timeout, found.encoding) == (None, "mine", None, "identity")


@pytest.mark.parametrize("type", [b"application/grpc+proto", b"application/grpc;v=1", b"Application/GRPC"])
def test_content_types(type: bytes) -> None:
    assert head(content_type=type).refused is None


@pytest.mark.parametrize("type", [b"", b"application/json", b"application/grpc-web", b"application/grpcx"])
def test_content_types_that_are_not_grpcs(type: bytes) -> None:
    refused = head(content_type=type).refused
    assert isinstance(refused, NotACall)
    assert refused.http_status == 415
    assert "application/grpc" in refused.message


def test_a_method_that_is_not_post() -> None:
    refused = CallHead([(b":method", b"GET"), (b":path", b"/")], METHODS).refused
    assert isinstance(refused, NotACall)
    assert (refused.http_status, refused.headers) == (405, ((b"allow", b"POST"),))


def test_an_unknown_method() -> None:
    refused = CallHead([(b":method", b"POST"), (b":path", b"/x/y"), (b"content-type", b"application/grpc")], {}).refused
    assert refused is not None
    assert (refused.code, refused.message) == (Code.UNIMPLEMENTED, "Method not found!")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"2H", 7200),
        (b"3M", 180),
        (b"4S", 4),
        (b"5m", 0.005),
        (b"6u", 6e-6),
        (b"99999999n", 0.099999999),
        (b"0S", 0),
    ],
)
def test_timeouts(text: bytes, seconds: float) -> None:
    assert head(grpc_timeout=text).timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"1", b"S", b"-1S", b"1.5S", b"123456789S", b"1s", b"1 S"])
def test_timeouts_that_are_none(text: bytes) -> None:
    refused = head(grpc_timeout=text).refused
    assert refused is not None
    assert refused.code is Code.INTERNAL
    assert "grpc-timeout" in refused.message


def test_an_unknown_encoding_is_told_the_known_ones() -> None:
    refused = head(grpc_encoding=b"br").refused
    assert refused is not None
    assert refused.code is Code.UNIMPLEMENTED
    assert refused.headers == ((b"grpc-accept-encoding", b"identity,deflate,gzip"),)
    assert head(grpc_encoding=b"gzip").encoding == "gzip"


def test_an_id_that_cannot_stand_in_a_log_line_is_none() -> None:
    assert head((b"x-request-id", b"a b")).given_id is None
    assert head((b"x-request-id", b"x" * 129)).given_id is None
