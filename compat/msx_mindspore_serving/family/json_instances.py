"""The document of a request: its instances, each with a value per input."""

from typing import Any

import msgspec

from msx_core.elements import TooManyElements, check_json
from msx_mindspore_serving.family.errors import ServingError
from msx_mindspore_serving.family.json_values import parse_value

_BOM = b"\xef\xbb\xbf"
_ILLEGAL = "Illegal JSON format."


def read_document(body: bytes) -> Any:
    """Raises ServingError for what is not JSON."""
    if not body:
        raise ServingError("http message invalid")
    try:
        check_json(body)
        return msgspec.json.decode(body.removeprefix(_BOM))
    except TooManyElements as error:
        raise ServingError(f"json message, {error}") from None
    except UnicodeDecodeError:
        raise ServingError(_ILLEGAL) from None
    except RecursionError:
        raise ServingError(f"{_ILLEGAL} It is nested too deeply.") from None
    except msgspec.DecodeError as error:
        raise ServingError(f"{_ILLEGAL}{error}") from None


def parse_instances(document: Any) -> list[dict[str, Any]]:
    """Raises ServingError."""
    try:
        return _parsed(document)
    except ServingError as error:
        raise ServingError(f"Parser request failed, {error.message}") from None


def _parsed(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict) or "instances" not in document:
        raise ServingError("key 'instances' expects to exist once, but actually 0 times")
    found = document["instances"]
    if isinstance(found, dict):
        if not found:
            raise ServingError("json object, value is empty")
        return [_instance(found)]
    if found == []:
        raise ServingError("instances value is array type, but no value")
    if not isinstance(found, list) or not isinstance(found[0], dict):
        raise ServingError("instances no key mode is not supported")
    return [_item(one) for one in found]


def _item(instance: Any) -> dict[str, Any]:
    if not isinstance(instance, dict):
        raise ServingError("json array, instance is not object type")
    if not instance:
        raise ServingError("json array, instance is object type, but no value")
    return _instance(instance)


def _instance(values: dict[str, Any]) -> dict[str, Any]:
    if "" in values:
        raise ServingError("string key is empty")
    return {name: parse_value(value) for name, value in values.items()}
