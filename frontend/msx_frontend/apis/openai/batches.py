"""OpenAI's `/v1/batches`: files whose lines are requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from msx_core.service_errors import ResourceNotFound
from msx_frontend.apis.openai import file_schemas as schemas
from msx_frontend.apis.openai.pages import QUERIES, page_of
from msx_frontend.batches.asked import BatchRequest, batch_request
from msx_frontend.batches.errors import NO_BATCHES
from msx_frontend.batches.records import TIMES, BatchHead, KeptBatch
from msx_frontend.batches.runner import Batches
from msx_net.http.family import Reply, Route
from msx_net.http.request import Request
from msx_net.keys import owner_of_key

EXAMPLE = {"input_file_id": "file-abc", "endpoint": "/v1/chat/completions", "completion_window": "24h"}


def batch_routes(batches: Batches | None) -> Iterator[Route]:
    """`batches` is None where the server runs none."""
    answers = BatchAnswers(batches)
    yield Route(
        "POST",
        "/v1/batches",
        answers.create,
        summary="Run the lines of a file as requests",
        request_schema=BatchRequest,
        example=EXAMPLE,
        response_schema=schemas.BatchObject,
    )
    yield Route(
        "GET",
        "/v1/batches",
        answers.list,
        summary="Batches of a key",
        queries=QUERIES,
        response_schema=schemas.BatchList,
    )
    yield Route(
        "GET", "/v1/batches/{id}", answers.show, summary="How a batch stands", response_schema=schemas.BatchObject
    )
    yield Route(
        "POST",
        "/v1/batches/{id}/cancel",
        answers.cancel,
        summary="Cancel a batch: what was answered is kept",
        response_schema=schemas.BatchObject,
    )


class BatchAnswers:
    """Methods raise UnknownBatch, and StoreUnavailable."""

    def __init__(self, batches: Batches | None, *, of_all: bool = False) -> None:
        """`of_all`: for operators, who see the batches of all keys."""
        self._batches, self._of_all = batches, of_all

    async def create(self, request: Request) -> Reply:
        """Raises BadRequest, UnknownFile, TooManyBatches, too."""
        return self._json(await self._found.create(batch_request(request.object()), owner_of_key(request.call.key)))

    async def list(self, request: Request) -> Reply:
        found = self._found.batches(None if self._of_all else owner_of_key(request.call.key))
        return _json(page_of(found, request.query, shown=self._shown))

    async def show(self, request: Request) -> Reply:
        return self._json(await self._found.find(request.names["id"], self._owner(request)))

    async def cancel(self, request: Request) -> Reply:
        """Raises BatchHasEnded, too."""
        return self._json(await self._found.cancel(request.names["id"], self._owner(request)))

    def _owner(self, request: Request) -> str:
        """Whose batch is meant."""
        return self._found.book.owner_of(request.names["id"]) if self._of_all else owner_of_key(request.call.key)

    def _shown(self, batch: KeptBatch) -> dict[str, Any]:
        return {**_shown(batch), "key": batch.owner} if self._of_all else _shown(batch)

    def _json(self, batch: KeptBatch) -> Reply:
        return _json(self._shown(batch))

    @property
    def _found(self) -> Batches:
        if self._batches is None:
            raise ResourceNotFound(NO_BATCHES)
        return self._batches


def _shown(batch: KeptBatch) -> dict[str, Any]:
    head = batch.head
    has_files = batch.has_ended
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": head.endpoint,
        "errors": _errors(head),
        "input_file_id": head.input,
        "completion_window": head.window,
        "status": head.state,
        "output_file_id": (has_files and head.output) or None,
        "error_file_id": (has_files and head.error) or None,
        "created_at": int(batch.created),
        **{f"{state}_at": int(head.times[state]) if state in head.times else None for state in TIMES},
        "expires_at": int(head.end),
        "request_counts": {"total": head.total, "completed": head.completed, "failed": head.failed},
        "metadata": head.metadata,
    }


def _errors(head: BatchHead) -> dict[str, Any] | None:
    return {"object": "list", "data": msgspec.to_builtins(head.faults)} if head.faults else None


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))
