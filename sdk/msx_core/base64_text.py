"""Base64 as clients write it: in one line, or in lines, as MIME (RFC 2045) and `base64 FILE` do."""

import base64
import binascii


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
