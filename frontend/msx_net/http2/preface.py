"""How a connection begins (RFC 9113 §3.4), and who is at the wrong port."""

import re

from msx_net.http2.frames import PREFACE

_TEXT = (
    b"This port speaks HTTP/2 only, as gRPC clients do; this is HTTP/1. "
    b"Use a gRPC client, or the port of the HTTP API.\n"
)

_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
    % (len(_TEXT), _TEXT)
)

_HTTP1 = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT|PRI)(?: |\Z)")


class NotHttp2(Exception):
    """The client speaks something else; `answer` is in its language, and empty when that is not known."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


def check_preface(data: bytes) -> None:
    """`data` is what came until now. Raises NotHttp2 as soon as it cannot become a preface."""
    if not PREFACE.startswith(data[: len(PREFACE)]):
        raise NotHttp2(_ANSWER if _HTTP1.match(data) else b"")
