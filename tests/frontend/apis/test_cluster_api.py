"""`GET /cluster`."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import MagicMock

import msgspec
import pytest

from msx_core.service_errors import ResourceNotFound
from msx_frontend.apis.cluster.family import NONE, cluster_api
from msx_frontend.workers.workplace import Report
from msx_net.http.family import Answer


def answer(report: Report | None) -> Any:
    show = cast(Answer, cluster_api(report).routes[0].answer)

    async def ask() -> Any:
        return msgspec.json.decode(cast(bytes, (await show(MagicMock())).body))

    return asyncio.run(ask())


def test_a_server_with_a_cluster() -> None:
    assert answer(lambda: {"nodes": []}) == {"nodes": []}


def test_a_server_without_one() -> None:
    with pytest.raises(ResourceNotFound) as info:
        answer(None)
    assert (info.value.status, info.value.message) == (404, NONE)
