"""Lists in which vLLM's routes answer."""

import time
from typing import Any

from msx_frontend.generation.replies import JsonReply


def listed(id: str, model: str, data: list[dict[str, Any]], tokens: int) -> JsonReply:
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
    head = {"id": id, "object": "list", "created": int(time.time()), "model": model}
    return JsonReply({**head, "data": data, "usage": usage})
