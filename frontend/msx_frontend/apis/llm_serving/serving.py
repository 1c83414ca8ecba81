"""llm-serving's `/serving/…`: one server-sent event about the model that a server of one model means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msx_core.generation import GENERATE, Capabilities
from msx_frontend import __version__
from msx_frontend.apis.llm_serving.generate import RETRY
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.replies import event, model_header
from msx_frontend.generation.text_request import EVENT_STREAM
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.family import Answer, Reply
from msx_net.http.request import Request

Says = Callable[[ModelVersion], dict[str, Any]]


def answer_with(directory: Directory, says: Says) -> Answer:
    """`says` is given the model that is named by `default_llm`, else the first one that generates."""

    async def answer(request: Request) -> Reply:
        version = directory.seen_by(request.call.limited_key).find_for_tgi(None, GENERATE)
        return Reply(event(says(version)), headers=[*EVENT_STREAM, model_header(version)])

    return answer


def running(version: ModelVersion) -> dict[str, Any]:
    """Requests whose texts are made now."""
    return _number(version, "msx_requests_running")


def waiting(version: ModelVersion) -> dict[str, Any]:
    """Requests that wait for a place among them."""
    return _number(version, "msx_requests_queued")


def model_info(version: ModelVersion) -> dict[str, Any]:
    """`max_batch_total_tokens` counts as many texts as the model takes requests at once."""
    offered = version.schema.capabilities or Capabilities()
    total, at_once = offered.max_total_tokens, offered.max_concurrent
    return {
        "docker_label": "",
        "max_batch_total_tokens": None if total is None or at_once is None else total * at_once,
        "max_concurrent_requests": at_once,
        "max_input_length": offered.max_input_tokens,
        "max_total_tokens": total,
        "model_device_type": version.workers.device_type,
        "model_dtype": None,
        "model_id": offered.model_id or version.source.name,
        "model_pipeline_tag": "text-generation",
        "version": __version__,
    }


def _number(version: ModelVersion, gauge: str) -> dict[str, Any]:
    return {"event": "message", "retry": RETRY, "data": int(version.figures.gauges()[gauge])}
