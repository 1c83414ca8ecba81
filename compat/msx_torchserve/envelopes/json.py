"""`service_envelope=json`: `{"instances": […]}` in, `{"predictions": […]}` out."""

import json
from typing import Any

from msx_core.base64_text import decode_base64
from msx_core.results import plain
from msx_sdk.errors import InvalidInput
from msx_torchserve.envelopes.base import BaseEnvelope, EntryCounts, body_of, first_error, listed

INSTANCES = "instances"


class JSONEnvelope(BaseEnvelope):
    """The instances of all requests form one batch; `{"b64": …}` in place of an instance is decoded to bytes."""

    one_per_call = True

    def parse_input(self, data: list[Any]) -> list[Any]:
        groups = [[_instance(item) for item in listed(body_of(row, INSTANCES), INSTANCES)] for row in data]
        self._counts = EntryCounts(groups)
        return [item for group in groups for item in group]

    def format_output(self, data: Any) -> list[Any]:
        return [first_error(part) or self._packed(part) for part in self._counts.split(data)]

    def _packed(self, part: Any) -> Any:
        """TorchServe writes this envelope's replies on one line."""
        return json.dumps({"predictions": part}, default=plain)


def _instance(item: Any) -> Any:
    if not isinstance(item, dict) or item.keys() != {"b64"}:
        return item
    try:
        return decode_base64(item["b64"])
    except ValueError as error:
        raise InvalidInput(f"'b64' holds no base64 text: {error}") from None
