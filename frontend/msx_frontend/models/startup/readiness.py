"""`--start --wait`: waits until every model serves, or one of them has failed."""

import asyncio
from collections.abc import Sequence

from msx_core.service_errors import ServiceError
from msx_frontend.models.versions.model_version import ModelVersion


async def why_not_ready(versions: Sequence[ModelVersion], limit: float) -> list[str]:
    """A sentence for each of `versions` that does not serve, once one of them has failed; empty when all are ready.

    After `limit` seconds the versions that are still loading are named, too.
    """
    tasks = {asyncio.ensure_future(_why_not(version)): version for version in versions}
    over = asyncio.get_running_loop().time() + max(limit, 0)
    failed: list[str] = []
    try:
        while (open_tasks := [task for task in tasks if not task.done()]) and not failed:
            left = over - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(open_tasks, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return [_still(tasks[task]) for task in open_tasks]
            failed = _failed(tasks)
        return _failed(tasks)
    finally:
        for task in tasks:
            task.cancel()


def _failed(tasks: dict[asyncio.Task[str], ModelVersion]) -> list[str]:
    return [
        f"Model {' '.join(version.labels)} is not ready: {why}"
        for task, version in tasks.items()
        if task.done() and (why := task.result())
    ]


async def _why_not(version: ModelVersion) -> str:
    """The reason once its status is settled; empty when it is ready. Devices of other models will not become free;
    memory may, and a cluster may still be joined."""
    if version.status.lost:
        return version.status.lost
    try:
        while (end := await version.workers.settled()) is None and (shortage := version.status.shortage) is not None:
            if shortage.resource not in ("cluster", "memory"):
                return f"{shortage.reason}."
            await version.status.wait()
    except ServiceError as error:
        return error.message
    return "" if end is None else end.reason


def _still(version: ModelVersion) -> str:
    phases = [replica.phase for replica in version.workers.all]
    phase = next(filter(None, [*phases, version.environment.phase]), "")
    status = version.status
    doing = f": {status.shortage.reason}" if status.shortage else f", {phase}" if phase else ""
    return f"Model {' '.join(version.labels)} is not ready within --wait-timeout: it is {status.state.value}{doing}."
