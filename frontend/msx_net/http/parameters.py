"""Parameters of management requests, wherever TorchServe's clients put them."""

from __future__ import annotations

from typing import Any

from msx_core.service_errors import BadRequest
from msx_net.http.request import Request


def parameters(request: Request) -> dict[str, Any]:
    """Query parameters, or the members of a JSON body, which win. Raises BadRequest for malformed JSON."""
    values: dict[str, Any] = dict(request.query)
    if request.call.content_type.partition(b";")[0].strip().lower() != b"application/json":
        return values
    members = request.json() if request.body else {}
    if not isinstance(members, dict):
        raise BadRequest(f"The request body must be a JSON object with parameters, not {type(members).__name__}.")
    return {**values, **members}
