"""The images of a request for text."""

from typing import Literal

from msx_core.generation.wire import Natural, Positive, WireStruct

MediaType = Literal["image/png", "image/jpeg", "image/webp", "image/gif"]


class Image(WireStruct):
    """One image file as it came. The server has read its head, and decoded no pixels: a file may still be damaged.

    Of an animation the first frame is meant.
    """

    data: bytes
    media_type: MediaType
    """The format by the file's own first bytes, whatever the client calls it."""
    width: Positive
    """Pixels, as the head has it: before Exif data turn the image."""
    height: Positive
    digest: str
    """SHA-256 of `data` in hexadecimal digits, for caches."""
    at: Natural | None = None
    """The place in a `prompt`, in characters, before which the image stands; None for one of `messages`."""
