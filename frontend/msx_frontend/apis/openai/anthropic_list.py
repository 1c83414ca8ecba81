"""The list of models in Anthropic's form, whose path is OpenAI's: https://docs.anthropic.com/en/api/models-list"""

from collections.abc import Sequence
from typing import Any

from msx_core.rfc3339 import rfc3339
from msx_core.service_errors import BadRequest
from msx_net.http.request import Request

MOST = 1000


def anthropic_model(described: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "type": "model",
        "id": described["id"],
        "display_name": described["id"],
        "created_at": rfc3339(described["created"]),
    }
    if (context := described.get("max_model_len")) is not None:
        shown["max_input_tokens"] = context
    return shown


def page(models: Sequence[dict[str, Any]], request: Request) -> dict[str, Any]:
    """The models between `after_id` and `before_id`, `limit` at most. Raises BadRequest for an id that is not there."""
    ids, query = [one["id"] for one in models], request.query
    first = _place(ids, after) + 1 if (after := query.get("after_id")) else 0
    last = _place(ids, before) if (before := query.get("before_id")) else len(ids)
    limit = _limit(query.get("limit"))
    # Those just before `before_id` are wanted, where it alone is given.
    chosen = (
        models[max(first, last - limit) : last] if before and not after else models[first : min(last, first + limit)]
    )
    more = len(chosen) < last - first
    shown = [anthropic_model(one) for one in chosen]
    ends = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"data": shown, "has_more": more, "first_id": ends[0], "last_id": ends[1]}


def _place(ids: list[str], id: str) -> int:
    if id not in ids:
        raise BadRequest(f"after_id, before_id: no model is called {id[:100]!r}")
    return ids.index(id)


def _limit(given: str | None) -> int:
    if given is None:
        return 20
    if not given.isdigit() or not 1 <= int(given[:9]) <= MOST:
        raise BadRequest(f"limit: expected a number from 1 to {MOST}")
    return int(given)
