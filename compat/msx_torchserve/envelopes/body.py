"""`service_envelope=body`: the value of a request's one field, without the dict around it."""

from typing import Any

from msx_torchserve.envelopes.base import BaseEnvelope


class BodyEnvelope(BaseEnvelope):
    one_per_call = True

    def parse_input(self, data: list[Any]) -> list[Any]:
        return [row.get("data", row.get("body")) for row in data]

    def format_output(self, data: Any) -> list[Any]:
        answers: list[Any] = data
        return answers
