"""`/management/batches` and `/management/files`: those of all keys, for operators."""

from __future__ import annotations

from collections.abc import Iterator

from msx_frontend.apis.openai import file_schemas as schemas
from msx_frontend.apis.openai.batches import BatchAnswers
from msx_frontend.apis.openai.files import FileAnswers
from msx_frontend.apis.openai.pages import QUERIES
from msx_frontend.batches.runner import Batches
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Route


def batches_management(batches: Batches | None) -> Family:
    """`batches` is None where the server runs none."""
    of_files = _file_routes(FileAnswers(None if batches is None else batches.shelf, of_all=True))
    routes = (*_batch_routes(BatchAnswers(batches, of_all=True)), *of_files)
    return Family("batches management", routes, own_failure, listener="management")


def _batch_routes(answers: BatchAnswers) -> Iterator[Route]:
    yield Route(
        "GET",
        "/management/batches",
        answers.list,
        key="management",
        summary="Batches of all keys",
        queries=QUERIES,
        response_schema=schemas.BatchesOfKeys,
    )
    yield Route(
        "GET",
        "/management/batches/{id}",
        answers.show,
        key="management",
        summary="How a batch of any key stands",
        response_schema=schemas.BatchOfKey,
    )
    yield Route(
        "POST",
        "/management/batches/{id}/cancel",
        answers.cancel,
        key="management",
        summary="Cancel a batch of any key: what was answered is kept",
        response_schema=schemas.BatchOfKey,
    )


def _file_routes(answers: FileAnswers) -> Iterator[Route]:
    yield Route(
        "GET",
        "/management/files",
        answers.list,
        key="management",
        summary="Files of all keys",
        queries=(*QUERIES, ("purpose", "string")),
        response_schema=schemas.FilesOfKeys,
    )
    yield Route(
        "GET",
        "/management/files/{id}",
        answers.show,
        key="management",
        summary="One file of any key",
        response_schema=schemas.FileOfKey,
    )
    yield Route(
        "DELETE",
        "/management/files/{id}",
        answers.delete,
        key="management",
        summary="Delete a file of any key",
        response_schema=schemas.DeletedFile,
    )
