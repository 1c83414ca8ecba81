"""Messages and prompts with images, as vLLM's renderer takes them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, Image, TokenizeRequest

LIMIT = "vllm.limit_mm_per_prompt"


class PlacedImage(NamedTuple):
    """`place` is the name of its part in the request."""

    place: str
    image: Image


class ChatParts:
    """Messages of a request, of the members of parts that are known alone: vLLM would fetch what another one names.

    `images` stand in the order of their parts, which get the decoded ones by `fill`.
    """

    def __init__(self, request: GenerateRequest | TokenizeRequest, most: int) -> None:
        """`most`: images of one request. Raises InvalidInput."""
        self._given, self._most = request.images, most
        self.images: list[PlacedImage] = []
        self._parts: list[dict[str, Any]] = []
        self.messages = [self._message(f"messages[{at}]", one) for at, one in enumerate(request.messages or [])]
        if len(self.images) < len(self._given):
            raise InvalidInput(f"messages: they have parts for {len(self.images)} of {len(self._given)} images")

    def fill(self, pictures: Sequence[Any]) -> None:
        for part, picture in zip(self._parts, pictures, strict=True):
            part["image_pil"] = picture

    def _message(self, place: str, message: dict[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if content is None or isinstance(content, str):
            return message
        if not isinstance(content, list):
            raise InvalidInput(f"{place}.content: expected a text or a list of parts")
        parts = [self._part(f"{place}.content[{number}]", part) for number, part in enumerate(content)]
        return {**message, "content": parts}

    def _part(self, place: str, part: Any) -> dict[str, Any]:
        kind, text = (part.get("type", "text"), part.get("text")) if isinstance(part, dict) else (part, None)
        if kind == "text" and isinstance(text, str):
            return {"type": "text", "text": text}
        if kind == "image" and self._most:
            return self._image(place, part.get("digest"))
        reads = "an image of the request or a text" if self._most else "text alone"
        raise InvalidInput(f'{place}: this model reads {reads}, {{"type": "text", "text": …}}, not {kind!r}')

    def _image(self, place: str, digest: Any) -> dict[str, Any]:
        check_count(place, len(self.images) + 1, self._most)
        image = self._given[len(self.images)] if len(self.images) < len(self._given) else None
        if image is None or image.digest != digest:
            raise InvalidInput(f"{place}: the request has no such image")
        part = {"type": "image_pil", "image_pil": None, "uuid": digest}
        self.images.append(PlacedImage(place, image))
        self._parts.append(part)
        return part


def images_of_prompt(images: Sequence[Image], most: int) -> list[PlacedImage]:
    """Raises InvalidInput."""
    check_count("prompt", len(images), most)
    return [PlacedImage(f"prompt: image {number}", image) for number, image in enumerate(images, 1)]


def illustrated(prompt: str, images: Sequence[Image], mark: Callable[[int], str | None]) -> str:
    """The prompt with a mark in the place of each image; the k-th, from 1, has `mark(k)`."""
    return "".join(_pieces(prompt, images, mark))


def check_count(place: str, count: int, most: int) -> None:
    """Raises InvalidInput for more images than the model may have in a request."""
    if count > most:
        raise InvalidInput(f"{place}: at most {most} images are allowed in a request; {LIMIT} is the limit")


def _pieces(prompt: str, images: Sequence[Image], mark: Callable[[int], str | None]) -> Iterator[str]:
    start = 0
    for number, image in enumerate(images, 1):
        stop = image.at or 0
        yield prompt[start:stop]
        yield mark(number) or ""
        start = stop
    yield prompt[start:]
