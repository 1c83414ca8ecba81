"""The registered models on disk, written by a thread; with `--ncs` nothing is written."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from msx_frontend.management_errors import NotSaved
from msx_frontend.models.state.store import StateStore, StateStoreError, StoredVersion, StoredWorkflow
from msx_frontend.models.traffic import TrafficRule


class State(Protocol):
    """Each call is one transaction, which is on the disk when the call returns. Raises NotSaved; `load`
    StateStoreError."""

    new: bool
    """Nothing has been written yet, so that the last snapshot counts."""

    async def begin(self) -> None:
        """The start of the server: its changes are one transaction, which `close` undoes. Raises StateStoreError."""

    async def commit(self) -> None:
        """The server has started. Raises StateStoreError."""

    async def forget_unanswered(self) -> list[str]:
        """Remove what was being registered when the last server ended. Returns what it was. Raises StateStoreError."""

    async def save(self, record: StoredVersion) -> None:
        """Add the version, or replace its record."""

    async def set_default(self, name: str, number: str, rule: TrafficRule | None) -> None:
        """`rule` divides the model's traffic from then on; with None all goes to the default version."""

    async def remove(self, name: str, number: str, rule: TrafficRule | None) -> None:
        """An unknown version is not an error."""

    async def load(self) -> list[StoredVersion]: ...

    async def save_traffic(self, name: str, rule: TrafficRule | None) -> None: ...

    async def load_traffic(self) -> dict[str, TrafficRule]: ...

    async def save_aliases(self, name: str, aliases: Sequence[str] | None) -> None:
        """None: the aliases of the model's versions count."""

    async def load_aliases(self) -> dict[str, list[str]]: ...

    async def save_workflow(self, record: StoredWorkflow) -> None: ...

    async def set_node_workers(self, workflow: str, node: str, least: int, most: int) -> None: ...

    async def remove_workflow(self, name: str) -> None: ...

    async def load_workflows(self) -> list[StoredWorkflow]: ...

    def close(self) -> None: ...


class PersistentState:
    """SQLite, on a thread of its own."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.new = store.new
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state")

    async def begin(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.begin)

    async def commit(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.commit)

    async def forget_unanswered(self) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.forget_unanswered)

    async def save(self, record: StoredVersion) -> None:
        await self._write(self._store.save_version, record)

    async def set_default(self, name: str, number: str, rule: TrafficRule | None) -> None:
        await self._write(self._store.set_default, name, number, rule)

    async def remove(self, name: str, number: str, rule: TrafficRule | None) -> None:
        await self._write(self._store.remove_version, name, number, rule)

    async def load(self) -> list[StoredVersion]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.load_all)

    async def save_traffic(self, name: str, rule: TrafficRule | None) -> None:
        await self._write(self._store.save_traffic, name, rule)

    async def load_traffic(self) -> dict[str, TrafficRule]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.load_traffic)

    async def save_aliases(self, name: str, aliases: Sequence[str] | None) -> None:
        await self._write(self._store.save_aliases, name, aliases)

    async def load_aliases(self) -> dict[str, list[str]]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.load_aliases)

    async def set_node_workers(self, workflow: str, node: str, least: int, most: int) -> None:
        await self._write(self._store.set_node_workers, workflow, node, least, most)

    async def save_workflow(self, record: StoredWorkflow) -> None:
        await self._write(self._store.save_workflow, record)

    async def remove_workflow(self, name: str) -> None:
        await self._write(self._store.remove_workflow, name)

    async def load_workflows(self) -> list[StoredWorkflow]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.load_workflows)

    def close(self) -> None:
        self._thread.shutdown()
        self._store.close()

    async def _write(self, write: Callable[..., None], *values: Any) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, write, *values)
        except StateStoreError as error:
            raise NotSaved(str(error)) from error


class UnsavedState:
    """State of a server with `--ncs`: nothing is read or written."""

    new = True

    async def begin(self) -> None:
        return None

    async def commit(self) -> None:
        return None

    async def forget_unanswered(self) -> list[str]:
        return []

    async def save(self, record: StoredVersion) -> None:
        return None

    async def set_default(self, name: str, number: str, rule: TrafficRule | None) -> None:
        return None

    async def remove(self, name: str, number: str, rule: TrafficRule | None) -> None:
        return None

    async def load(self) -> list[StoredVersion]:
        return []

    async def save_traffic(self, name: str, rule: TrafficRule | None) -> None:
        return None

    async def load_traffic(self) -> dict[str, TrafficRule]:
        return {}

    async def save_aliases(self, name: str, aliases: Sequence[str] | None) -> None:
        return None

    async def load_aliases(self) -> dict[str, list[str]]:
        return {}

    async def set_node_workers(self, workflow: str, node: str, least: int, most: int) -> None:
        return None

    async def save_workflow(self, record: StoredWorkflow) -> None:
        return None

    async def remove_workflow(self, name: str) -> None:
        return None

    async def load_workflows(self) -> list[StoredWorkflow]:
        return []

    def close(self) -> None:
        return None
