"""`service_envelope=kserve`: KServe's first protocol, `{"instances": […]}`."""

from typing import Any

from msx_torchserve.envelopes.json import JSONEnvelope


class KServeEnvelope(JSONEnvelope):
    """As the JSON envelope, but replies are indented, and explanations have the key `explanations`."""

    one_per_call = True

    def _packed(self, part: Any) -> Any:
        return {"explanations" if self._is_explain() else "predictions": part}

    def _is_explain(self) -> bool:
        return bool(self.context.get_request_header(0, "explain") == "True")
