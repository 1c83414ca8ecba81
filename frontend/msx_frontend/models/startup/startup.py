"""Registers the models of the start: those of the state, then those of the command line."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from msx_archiver.cache import UnpackedModel
from msx_core.config import ConfigError, load_model_config
from msx_core.service_errors import ServiceError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.model_store import FoundArchive
from msx_frontend.archives.suffixes import stem
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.startup.arguments import expand
from msx_frontend.models.startup.servable_folders import PackedServables
from msx_frontend.models.startup.summary import StartSummary, said_of
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.models.traffic import TrafficRule
from msx_frontend.models.versions.model_version import ModelVersion

log = logging.getLogger("msx.startup")

_KEPT = "; it is remembered until it is unregistered (--enable-model-api), or its archive is back at a start"


class _RequestedArchive(NamedTuple):
    """One archive of the command line."""

    name: str
    version: str
    digest: str
    found: FoundArchive
    owns_devices: bool

    @property
    def labels(self) -> tuple[str, str]:
        return self.name, self.version


class _Failure(NamedTuple):
    """Why a model could not be registered: a file of the command line, or a version of the state."""

    text: str
    file: str = ""
    version: tuple[str, str] | None = None


class Startup:
    def __init__(
        self,
        management: Management,
        state: State,
        models: tuple[str, ...],
        snapshot: Sequence[StoredVersion] = (),
        servables: PackedServables | None = None,
    ) -> None:
        """`models` are those of the command line, `snapshot` those of the snapshot that the configuration names."""
        self._servables = servables or PackedServables()
        self._management = management
        self._state = state
        self._models = models
        self._snapshot = {(stored.name, stored.version): stored for stored in snapshot}
        self._failures: list[_Failure] = []
        self.restored: set[tuple[str, str]] = set()
        """Names and versions that came of the state, or of a snapshot."""
        self.account = StartSummary()

    async def load(self) -> list[str]:
        """Returns the reasons for models that could not be loaded; the server starts without them.

        Raises StartupError for an archive of `--models` that does not exist.
        """
        given = [each for model in self._models for each in expand(model, self._management.store)]
        asked = [await self._look(name, path) for name, path in [*given, *self._packed()]]
        wanted = {one.labels: one for one in _groups_first([one for one in asked if one is not None])}
        for unanswered in await self._state.forget_unanswered():
            log.warning("%s was being registered when the last server ended, and is not known", unanswered)
        state = await self._state.load()
        for name, aliases in (await self._state.load_aliases()).items():
            self._management.registry.aliases.give(name, aliases)  # before versions come, whose lists do not count then
        self.account.asked = [" ".join(labels) for labels in wanted]
        self.account.remembered = [said_of(stored) for stored in state]
        await self._load_all(wanted, state)
        self._tell_hidden()
        return [failure.text for failure in self._failures]

    def _tell_hidden(self) -> None:
        for name, alias in self._management.registry.aliases.hidden():
            log.warning("alias %s of model %s has no effect: it is the name or an alias of another model", alias, name)

    def absent(self) -> list[str]:
        """Files of the command line that could not be loaded, until a model of a file of that name has served."""
        versions = self._management.registry.all_versions()
        served = {one.source.archive.file_name for one in versions if one.status.served or not one.workers.wanted}
        return [failure.file for failure in self._failures if failure.file and failure.file not in served]

    def absent_new(self) -> list[str]:
        """The same, without files of versions that were restored, from whatever place they were to come."""
        restored = {one.source.archive.file_name for one in self._restored_versions()}
        return [file for file in self.absent() if file not in restored]

    def _restored_versions(self) -> Iterator[ModelVersion]:
        registry = self._management.registry
        return (registry.find(*labels) for labels in self.restored if registry.has(*labels))

    def not_loaded(self) -> list[str]:
        """Why models of the start are not there, without those that were registered or unregistered meanwhile."""
        absent, registry = set(self.absent()), self._management.registry
        lost = {version.labels for version in registry.all_versions() if version.status.lost}
        return [failure.text for failure in self._failures if failure.file in absent or failure.version in lost]

    async def _load_all(self, wanted: Mapping[tuple[str, str], _RequestedArchive], state: list[StoredVersion]) -> None:
        """Loads in the order of the state, so that the oldest model and the oldest version of a name stay the same.

        For a version in both, the state beats the last snapshot; any other snapshot that is named beats the state.
        """
        named, given = self._snapshot, dict(wanted)
        self.account.of_snapshot = [said_of(stored) for stored in named.values()]
        adopted = dict(named)
        for stored in state:
            if (adopts := adopted.pop((stored.name, stored.version), None)) is not None:
                await self._adopt(adopts)
                continue
            ours = given.get((stored.name, stored.version))
            if ours is None or ours.digest == stored.digest:
                await self._restore(stored, given=ours is not None)
            else:
                await self._add(given.pop(ours.labels))
        for stored in adopted.values():
            await self._adopt(stored)
        for one in given.values():
            if not self._management.registry.has(one.name, one.version):
                await self._add(one)
        rules = await self._state.load_traffic()  # before a default is set, which ends the division of traffic
        await self._restore_defaults(state)
        await self._restore_traffic(rules)
        await self._restore_defaults(named.values())
        known = [*state, *named.values()]
        for name, version in self._management.default_versions():
            if name not in {stored.name for stored in known}:
                await self._restore_default(name, version)
        for name, newest in self._servables.newest.items():
            if (name, newest) not in {(stored.name, stored.version) for stored in known}:
                await self._restore_default(name, newest)

    def _packed(self) -> list[tuple[None, Path]]:
        for text, file in self._servables.failures:
            self._failed(_Failure(text=text, file=file))
        return [(None, path) for path in self._servables.archives]

    async def _restore_traffic(self, rules: Mapping[str, TrafficRule]) -> None:
        registry, kept = self._management.registry, await self._state.load_traffic()
        for name, rule in rules.items():
            missing = [number for number in rule.weights if not registry.has(name, number)]
            if missing:
                log.warning("traffic of model %s is not divided any more: version %s is missing", name, missing[0])
            else:
                registry.divide(name, rule)
                if kept.get(name) != rule:
                    await self._state.save_traffic(name, rule)

    async def _restore_defaults(self, versions: Iterable[StoredVersion]) -> None:
        for stored in versions:
            if stored.is_default:
                await self._restore_default(stored.name, stored.version)

    async def _restore_default(self, name: str, version: str) -> None:
        registry = self._management.registry
        if registry.has(name, version) and not registry.is_default(registry.find(name, version)):
            await self._management.set_default(name, version)

    async def _adopt(self, stored: StoredVersion) -> None:
        self.restored.add((stored.name, stored.version))
        wanted = _registration(stored)
        try:
            async with self._archive_of(stored) as path:
                await self._management.restore(path, wanted, stored, adopted=True)
        except ServiceError as error:
            why = f"model {stored.name} {stored.version} of the snapshot could not be loaded: {error.message}"
            self._failed(_Failure(why, version=(stored.name, stored.version)))
            if not self._management.registry.has(stored.name, stored.version):
                await self._management.adopt_lost(wanted, stored, error.message)

    @asynccontextmanager
    async def _archive_of(self, stored: StoredVersion) -> AsyncIterator[Path]:
        """The archive of the version, which is downloaded again if it is missing."""
        if Path(stored.url).is_absolute():
            yield Path(stored.url)
            return
        signed = bool(stored.options.get("s3_sse_kms"))
        url = ArchiveUrl.parse(stored.url)
        async with self._management.store.obtained(url, signed=signed, reuse=True, name=stored.name) as found:
            yield found.path

    async def _restore(self, stored: StoredVersion, *, given: bool) -> None:
        """`given`: the command line names the version, too, so that it may be loaded from there."""
        self.restored.add((stored.name, stored.version))
        try:
            async with self._archive_of(stored) as path:
                await self._management.restore(path, _registration(stored), stored)
        except ServiceError as error:
            kept = "" if given else _KEPT
            why = f"model {stored.name} {stored.version} could not be restored: {error.message}{kept}"
            self._failed(_Failure(why, version=(stored.name, stored.version)))
            if not given:
                self._management.keep_lost(_registration(stored), stored, error.message)

    async def _look(self, name: str | None, at: Path | ArchiveUrl) -> _RequestedArchive | None:
        store = self._management.store
        try:
            if isinstance(at, Path):
                return await self._identify(name, FoundArchive(path=at, url=store.url_of(at)))
            async with store.obtained(at, reuse=True, name=name or "") as found:
                return await self._identify(name, found)
        except ServiceError as error:
            model, file = (at.name, at.name) if isinstance(at, Path) else (at.shown, at.file_name)
            self._failed(_Failure(text=f"model {model} could not be loaded: {error.message}", file=file))
            return None

    async def _identify(self, name: str | None, found: FoundArchive) -> _RequestedArchive:
        async with self._management.store.contents.using(found.path) as unpacked:
            model = unpacked.manifest.model
            name = name or model.model_name or stem(found.path)
            owns = await asyncio.to_thread(_owns_devices, unpacked)
            return _RequestedArchive(
                name=name, version=model.model_version, digest=unpacked.digest, found=found, owns_devices=owns
            )

    async def _add(self, one: _RequestedArchive) -> None:
        path, url = one.found
        wanted = Registration(url=url, model_name=one.name, synchronous=False, at_startup=True)
        try:
            await self._management.register_from(path, wanted)
        except ServiceError as error:
            archive = ArchiveUrl.split(url)
            self._failed(
                _Failure(text=f"model {path.name} could not be loaded: {error.message}", file=archive.file_name)
            )
            versions = self._management.registry.all_versions()
            await self._management.store.forget(archive, [version.source.archive for version in versions])

    def _failed(self, failure: _Failure) -> None:
        log.error("%s", failure.text)
        self._failures.append(failure)


def _registration(stored: StoredVersion) -> Registration:
    return msgspec.convert({**stored.options, "at_startup": True}, Registration)


def _groups_first(wanted: list[_RequestedArchive]) -> list[_RequestedArchive]:
    """Parallel groups come first, because other workers share the devices that remain. Versions of a name keep their
    order."""
    names = {one.name for one in wanted if one.owns_devices}
    return sorted(wanted, key=lambda one: one.name not in names)


def _owns_devices(unpacked: UnpackedModel) -> bool:
    """A wrong config is reported when the model is registered."""
    file = unpacked.manifest.model.config_file
    try:
        return file is not None and load_model_config(unpacked.path / file)[0].layout.devices > 0
    except ConfigError:
        return False
