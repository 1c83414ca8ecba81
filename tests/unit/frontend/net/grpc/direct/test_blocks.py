from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.direct.blocks import HEADERS_TOO_LARGE, escaped, refusal, trailers
from msx_frontend.net.grpc.refused import Refused
from tests.unit.frontend.net.grpc.direct.fakes import fields


def test_what_stays_as_it_is() -> None:
    printable = "".join(chr(code) for code in range(0x20, 0x7F) if code != 0x25)
    assert escaped(printable) == printable.encode()
    assert escaped("100 %\n\x7fé") == b"100 %25%0A%7F%C3%A9"


@given(st.text())
def test_any_message_is_printable_ascii(message: str) -> None:
    assert all(0x20 <= byte < 0x7F for byte in escaped(message))


def test_an_error() -> None:
    block = trailers(Code.NOT_FOUND, "No.", [("x-request-id", "a")])
    assert fields(block) == {"grpc-status": "5", "grpc-message": "No.", "x-request-id": "a"}


def test_what_is_not_a_call() -> None:
    refused = Refused(Code.UNKNOWN, "Not so.", http_status=405, headers=((b"allow", b"POST"),))
    said = fields(refusal(refused))
    assert (said[":status"], said["allow"], said["grpc-status"], said["grpc-message"]) == (
        "405",
        "POST",
        "2",
        "Not so.",
    )


def test_headers_that_are_too_large() -> None:
    said = fields(HEADERS_TOO_LARGE)
    assert (said[":status"], said["grpc-status"]) == ("200", "8")
    assert "16384 bytes" in said["grpc-message"]
