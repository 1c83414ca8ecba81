"""The header blocks of answers: most are the same for every call."""

from functools import lru_cache
from urllib.parse import quote

from msx_net.grpc.codes import Code
from msx_net.grpc.direct.compression import ACCEPTED
from msx_net.grpc.listen import MAX_HEADERS
from msx_net.grpc.metadata import REQUEST_ID, Metadata
from msx_net.grpc.refused import NotACall, Refused
from msx_net.http2.header_blocks import encode_field, encode_headers

_STATUS = (b":status", b"200")
_CONTENT_TYPE = (b"content-type", b"application/grpc")
_ACCEPTED = (b"grpc-accept-encoding", ACCEPTED.encode())
_PLAIN = " !\"#$&'()*+,/:;<=>?@[\\]^`{|}"
"""Printable ASCII but for the percent sign; letters, digits and `_.-~` are always so."""

HEAD = encode_headers([_STATUS, _CONTENT_TYPE, _ACCEPTED])
OK = encode_headers([(b"grpc-status", b"0")])
_REQUEST_ID = REQUEST_ID.encode()


def ok_trailers(request_id: str) -> bytes:
    """An empty id is left out."""
    return OK + encode_field(_REQUEST_ID, request_id.encode()) if request_id else OK


def trailers(code: Code, message: str, metadata: Metadata) -> bytes:
    """`metadata` are the server's own: in ASCII, none of them binary."""
    fields = [
        encode_field(key.encode(), value if isinstance(value, bytes) else value.encode()) for key, value in metadata
    ]
    if message:
        fields.append(encode_field(b"grpc-message", escaped(message)))
    return b"".join([_status(code), *fields])


def escaped(message: str) -> bytes:
    """As `grpc-message` carries it: UTF-8, percent-encoded but for printable ASCII."""
    return quote(message.encode(errors="replace"), safe=_PLAIN).encode()


def refusal(refused: Refused) -> bytes:
    """The whole answer to what never became a call, in one block."""
    return encode_headers([_STATUS, _CONTENT_TYPE, *refused.headers]) + trailers(refused.code, refused.message, ())


def not_a_call(refused: NotACall, *, bodiless: bool) -> tuple[bytes, bytes]:
    """The header block and the body of the answer to a request of HTTP; `bodiless` to HEAD."""
    text = refused.message.encode() + b"\n"
    headers = [(b":status", b"%d" % refused.http_status), (b"content-type", b"text/plain; charset=utf-8")]
    return encode_headers(
        [*headers, (b"content-length", b"%d" % len(text)), *refused.headers]
    ), b"" if bodiless else text


@lru_cache
def _status(code: Code) -> bytes:
    return encode_headers([(b"grpc-status", b"%d" % code)])


HEADERS_TOO_LARGE = refusal(
    Refused(
        Code.RESOURCE_EXHAUSTED,
        f"The metadata of the call is larger than {MAX_HEADERS} bytes, 32 more for each of its pairs: send less of it.",
    )
)
"""The answer of the connection, which reads no such headers."""
