"""Base64 as clients write it: in one line, or in lines, as MIME (RFC 2045) and `base64 FILE` do."""

import base64
import binascii

SLICE = 1 << 16
"""Characters, a multiple of four, that are decoded at once."""


def decode_base64(text: object) -> bytes:
    """Return the bytes of standard base64; ASCII white space is skipped. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError(f"expected a text, got {type(text).__name__}")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return base64.b64decode(without_white_space(text), validate=True)


def without_white_space(text: str) -> str:
    """Remove the white space of ASCII."""
    return b"".join(text.encode("utf-8", "surrogatepass").split()).decode("utf-8", "surrogatepass")


def decode_long_base64(text: str) -> bytes:
    """Like `decode_base64`, in slices, between which another thread may run: megabytes take tens of milliseconds."""
    try:
        return _decode_slices(text)
    except binascii.Error:
        return _decode_slices(without_white_space(text))


def _decode_slices(text: str) -> bytes:
    if 0 <= text.find("=") < len(text) - 2:  # at the end of a slice it would be taken for the text's
        raise binascii.Error("excess data after padding")
    return b"".join(base64.b64decode(text[at : at + SLICE], validate=True) for at in range(0, len(text), SLICE))
