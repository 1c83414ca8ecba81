"""Images that a request has in itself: data: URLs (RFC 2397) of base64."""

from msx_core.base64_text import decode_long_base64
from msx_core.images.heads import NotAnImage

_HEAD = 200
"""The most characters in front of the comma."""


def data_of_url(url: str) -> bytes:
    """Raises NotAnImage. The media type that the client names may be wrong: the file itself tells it."""
    head, comma, _ = url[:_HEAD].partition(",")
    kind = head.lower()
    if not (comma and kind.startswith("data:image/") and kind.endswith(";base64")):
        raise NotAnImage("expected data:image/…;base64, and the image's file in base64")
    try:
        return decode_long_base64(url[len(head) + 1 :])
    except ValueError as error:
        raise NotAnImage(f"the data: URL has no valid base64: {error}") from None
