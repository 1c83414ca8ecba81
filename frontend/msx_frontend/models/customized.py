"""`?customized=true`: the metadata that the handler returns about itself."""

from typing import Any

import msgspec

from msx_frontend.job import DESCRIBE, Job
from msx_frontend.models.answers import CollectedAnswer
from msx_frontend.models.versions.model_version import ModelVersion


async def customized_metadata(version: ModelVersion, number: str | None, request_id: str) -> Any:
    """Call the handler with the header `describe`. `number` is the requested version, if any.

    Raises ServiceError; 503 without a worker.
    """
    sink = CollectedAnswer()
    headers = [("describe", "True"), ("explain", "False"), ("url_path", "")]
    job = Job(request_id, version.source.name, number, [], headers, sink, kind=DESCRIBE)
    version.queue.submit(job)
    try:
        answer = await sink.result
    finally:
        job.cancel()
    try:
        return msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return answer.decode("utf-8", "replace")
