import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_net.grpc.codes import Code
from msx_net.grpc.direct.blocks import HEADERS_TOO_LARGE, escaped, not_a_call, refusal, trailers
from msx_net.grpc.refused import NotACall, Refused
from tests.net.grpc.direct.fakes import fields


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


def test_an_answer_to_a_call_that_cannot_be() -> None:
    said = fields(refusal(Refused(Code.UNIMPLEMENTED, "Not so.", headers=((b"grpc-accept-encoding", b"gzip"),))))
    assert (said[":status"], said["grpc-status"], said["grpc-message"]) == ("200", "12", "Not so.")
    assert said["grpc-accept-encoding"] == "gzip"


@pytest.mark.parametrize("bodiless", [False, True])
def test_what_is_not_a_call(bodiless: bool) -> None:
    refused = NotACall(405, "Not so.", (b"allow", b"POST"))
    block, body = not_a_call(refused, bodiless=bodiless)
    assert fields(block) == {
        ":status": "405",
        "content-type": "text/plain; charset=utf-8",
        "content-length": "8",
        "allow": "POST",
    }
    assert body == (b"" if bodiless else b"Not so.\n")


def test_headers_that_are_too_large() -> None:
    said = fields(HEADERS_TOO_LARGE)
    assert (said[":status"], said["grpc-status"]) == ("200", "8")
    assert "16384 bytes" in said["grpc-message"]
