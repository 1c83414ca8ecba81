"""Ollama's messages as those of OpenAI's chat, which templates are written for."""

from typing import Any

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.messages import MixedContent


def messages_of(messages: list[dict[str, Any]], images: ImageFinder) -> list[dict[str, Any]]:
    """Raises WrongParameter, which names the message."""
    calls = _CallIds()
    return [_message(f"messages[{number}]", one, images, calls) for number, one in enumerate(messages)]


def content_with(place: str, text: str, given: Any, images: ImageFinder) -> str | MixedContent:
    """A content of a text and the images of `given`, which are files in base64. Raises WrongParameter."""
    if not given:
        return text
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise WrongParameter(f"{place}images", "expected a list of files in base64")
    if not images.reads:
        raise WrongParameter(f"{place}images", "this model reads no images")
    parts = [_image(f"{place}images[{number}]", one, images) for number, one in enumerate(given)]
    return MixedContent([*parts, {"type": "text", "text": text}])


def _image(place: str, data: str, images: ImageFinder) -> dict[str, Any]:
    image = images.image(place, f"data:image/any;base64,{data}")
    return {"type": "image"} if image is None else {"type": "image", "digest": image.digest}


class _CallIds:
    """Ids for calls and their results, which have none here: results come in the order of the calls. Nine digits, as
    Mistral's templates want them."""

    def __init__(self) -> None:
        self._calls = self._results = 0

    def call(self) -> str:
        self._calls += 1
        return f"{self._calls:09d}"

    def result(self) -> str:
        self._results += 1
        return f"{self._results:09d}"


def _message(place: str, message: dict[str, Any], images: ImageFinder, ids: _CallIds) -> dict[str, Any]:
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise WrongParameter(f"{place}.content", f"expected a text, not {type(text).__name__}")
    made: dict[str, Any] = {
        "role": message.get("role"),
        "content": content_with(f"{place}.", text, message.get("images"), images),
    }
    if message.get("role") == "tool":
        made["tool_call_id"] = message.get("tool_call_id") or ids.result()
        made["name"] = message.get("tool_name") or message.get("name")
    if thoughts := message.get("thinking"):
        made["reasoning_content"] = thoughts
    if calls := message.get("tool_calls"):
        made["tool_calls"] = [{"id": ids.call(), **one} for one in _listed(f"{place}.tool_calls", calls)]
    return made


def _listed(place: str, calls: Any) -> list[dict[str, Any]]:
    if not isinstance(calls, list) or not all(isinstance(one, dict) for one in calls):
        raise WrongParameter(place, "expected a list of calls, which are objects")
    return calls
