"""Images in TGI's prompts: Markdown without a title, `![](URL)`, as TGI reads it for models that read images."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from msx_core.generation import Image
from msx_frontend.generation.images.finder import ImageFinder

BEGIN, END = "![](", ")"


class Prompt(NamedTuple):
    """A text without its images, which have their places in it."""

    text: str
    images: tuple[Image, ...] = ()


def prompt_of(inputs: str, images: ImageFinder) -> Prompt:
    """Raises WrongParameter, and ImagesWanted for images that are not ready. The prompt of a model that reads no images
    stays as it is."""
    if not images.reads or BEGIN not in inputs:
        return Prompt(inputs)
    texts, places, at = [], [], 0
    while (begin := inputs.find(BEGIN, at)) >= 0 and (end := inputs.find(END, begin)) >= 0:
        images.image("prompt", inputs[begin + len(BEGIN) : end])
        texts.append(inputs[at:begin])
        places.append(sum(map(len, texts)))
        at = end + len(END)
    placed = zip(images.images(), places, strict=True)
    return Prompt("".join([*texts, inputs[at:]]), tuple(structs.replace(image, at=place) for image, place in placed))
