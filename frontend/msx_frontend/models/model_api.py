"""TorchServe's management calls, with parameters by name. REST and gRPC send the same answers, in TorchServe's
words."""

from typing import Any, NamedTuple

from msx_core.service_errors import BadRequest
from msx_frontend.archives.fetches import Fetch
from msx_frontend.management_errors import ModelApiDisabled
from msx_frontend.models.aliases import alias_list
from msx_frontend.models.customized import customized_metadata
from msx_frontend.models.describe import describe
from msx_frontend.models.management import Management
from msx_frontend.models.parameters import Values, boolean, integer, page, text
from msx_frontend.models.registration import Registration
from msx_frontend.models.traffic import traffic_rule
from msx_frontend.models.versions.engine_choice import ENGINES
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState


class StatusMessage(NamedTuple):
    """A sentence for the operator, and the HTTP status."""

    text: str
    status: int = 200


_PROCESSING = StatusMessage(text="Processing worker updates...", status=202)


class ModelApi:
    """`enabled` is the key enable_model_api: without it models are neither registered nor unregistered.

    Every method raises ServiceError.
    """

    def __init__(self, management: Management, *, enabled: bool) -> None:
        self._management, self._enabled = management, enabled

    def find(self, name: str, number: str | None) -> ModelVersion:
        return self._management.registry.find(name, number)

    def models(self, values: Values) -> dict[str, Any]:
        """All models except functions of workflows, which TorchServe does not list either."""
        registry = self._management.registry
        listed = [version for name in registry.names() if (version := registry.find(name)).source.url]
        following, shown = page(listed, values)
        entries = [{"modelName": version.source.name, "modelUrl": version.source.archive.shown} for version in shown]
        return {**following, "models": entries}

    async def describe(self, name: str, number: str | None, values: Values, request_id: str) -> list[dict[str, Any]]:
        """The version `number`, all of them for "all", or the default one."""
        registry = self._management.registry
        if not registry.has_model(name) and (fetch := self._management.store.fetches.find(name)) is not None:
            return [_fetching(fetch)]
        if number == "all":
            return [describe(version) for version in registry.versions_of(name)]
        version = self.find(name, number)
        described = describe(version)
        if boolean(values, "customized", False):
            described["customizedMetadata"] = await customized_metadata(version, number, request_id)
        return [described]

    async def register(self, values: Values) -> StatusMessage:
        self._check_enabled()
        wanted = _registration(values)
        return _registered(await self._management.register(wanted), wanted)

    async def scale(self, name: str, number: str | None, values: Values) -> StatusMessage:
        autoscaling = _switch(values, "autoscaling")
        stage = text(values, "stage")
        least, most = self._bounds(name, number, stage, values, keep=autoscaling is not None)
        wait = boolean(values, "synchronous", False)
        await self._management.scale(name, number, least, most, wait=wait, stage=stage, autoscaling=autoscaling)
        if not wait:
            return _PROCESSING
        version = f", version: {number}" if number else ""
        part = self.find(name, number).part(stage)
        of_stage = f", stage: {stage}" if stage else ""
        return _with_missing(part, f"Workers scaled to {least} for model: {name}{version}{of_stage}")

    def _bounds(
        self, name: str, number: str | None, stage: str | None, values: Values, *, keep: bool
    ) -> tuple[int, int]:
        """TorchServe's: the least is 1 and the most the least, unless the call says so; `keep` those that are set,
        where it says neither. Raises BadRequest."""
        if keep and "min_worker" not in values and "max_worker" not in values:
            part = self.find(name, number).part(stage)
            return part.workers.least, part.workers.most
        least = integer(values, "min_worker", 1)
        assert least is not None
        if least < 0:
            raise BadRequest(f"min_worker must be 0 or more, not {least}.")
        most = integer(values, "max_worker", least)
        assert most is not None
        return least, most

    async def unregister(self, name: str, number: str | None) -> StatusMessage:
        self._check_enabled()
        await self._management.unregister(name, number)
        return StatusMessage(f'Model "{name}" unregistered')

    async def change_sleep(self, name: str, number: str | None, level: int) -> StatusMessage:
        """Level 0 wakes it."""
        version = await self._management.change_sleep(name, number, level)
        depth = version.sleep.level
        return StatusMessage(f'Model "{name}" is {f"asleep at level {depth}" if depth else "awake"}')

    def sleepers(self) -> list[str]:
        """The names of models that can sleep."""
        registry = self._management.registry
        offered = ((name, registry.find(name).schema.capabilities) for name in registry.names())
        return [name for name, it in offered if it is not None and it.sleep]

    async def set_default(self, name: str, number: str) -> StatusMessage:
        await self._management.set_default(name, number)
        return StatusMessage(f'Default version successfully updated for model "{name}" to "{number}"')

    def traffic(self, name: str) -> dict[str, Any]:
        """How the requests without a version are divided, as shares of 1."""
        registry = self._management.registry
        (name, default), rule = registry.find(name).labels, registry.traffic(name)
        shares = {number: round(rule.share(number), 6) for number in rule.weights} if rule else {default: 1.0}
        sticky = {"stickyHeader": rule.sticky_header} if rule and rule.sticky_header else {}
        shown = {"weights": rule.weights} if rule else {}
        return {"modelName": name, "defaultVersion": default, **shown, "shares": shares, **sticky}

    async def divide_traffic(self, name: str, rule: object) -> StatusMessage:
        """`rule`: see `traffic_rule`."""
        await self._management.divide_traffic(name, wanted := traffic_rule(rule))
        shares = ", ".join(f"{number}: {wanted.share(number):.4g}" for number in wanted.weights)
        return StatusMessage(f'Traffic of model "{name}" is divided: {shares}')

    async def end_traffic(self, name: str) -> StatusMessage:
        await self._management.divide_traffic(name, None)
        default = self.find(name, None).source.version
        return StatusMessage(f'All traffic of model "{name}" goes to its default version, {default}')

    async def replace_aliases(self, name: str, value: object) -> StatusMessage:
        """`value`: see `alias_list`."""
        await self._management.replace_aliases(name, aliases := alias_list(value))
        return StatusMessage(
            f'Model "{name}" has the aliases {", ".join(aliases)}' if aliases else f'Model "{name}" has no aliases'
        )

    def _check_enabled(self) -> None:
        if not self._enabled:
            raise ModelApiDisabled


def _fetching(fetch: Fetch) -> dict[str, Any]:
    """A model whose archive is being downloaded: its version is not known yet."""
    return {
        "modelName": fetch.name,
        "modelVersion": "",
        "modelUrl": fetch.url,
        "minWorkers": 0,
        "maxWorkers": 0,
        "workers": [],
        "state": ModelState.LOADING.value,
        "reason": fetch.phase,
    }


def _registration(values: Values) -> Registration:
    if "url" not in values:
        raise BadRequest("Parameter url is required.")
    runtime = text(values, "runtime")
    if runtime is not None and runtime not in ("python", "python3", "LSP"):
        raise BadRequest(f"Invalid RuntimeType value: {runtime}")
    workers = integer(values, "initial_workers")
    return Registration(
        url=str(values["url"]),
        model_name=text(values, "model_name"),
        handler=text(values, "handler"),
        engine=_engine(values),
        runtime=runtime,
        batch_size=_positive(values, "batch_size"),
        max_batch_delay=_positive(values, "max_batch_delay", least=0),
        initial_workers=None if workers is None else max(workers, 0),
        response_timeout=_positive(values, "response_timeout"),
        startup_timeout=_positive(values, "startup_timeout"),
        s3_sse_kms=boolean(values, "s3_sse_kms", False),
        synchronous=boolean(values, "synchronous", True),
        replace=boolean(values, "replace", False),
        autoscaling=_switch(values, "autoscaling"),
    )


def _engine(values: Values) -> str | None:
    engine = text(values, "engine")
    if engine is not None and engine not in ENGINES:
        raise BadRequest(f"engine must be one of {', '.join(ENGINES)}, not {engine[:80]}.")
    if engine is not None and text(values, "handler") is not None:
        raise BadRequest("engine and handler exclude each other: give one of them.")
    return engine


def _switch(values: Values, name: str) -> bool | None:
    """None: not given. Raises BadRequest."""
    value = values.get(name)
    if value is not None and str(value).strip().lower() not in ("true", "false"):
        raise BadRequest(f"{name} must be true or false, not {str(value)[:80]}.")
    return None if value is None else boolean(values, name, False)


def _positive(values: Values, name: str, least: int = 1) -> int | None:
    value = integer(values, name)
    if value is not None and value < least:
        raise BadRequest(f"{name} must be {least} or more, not {value}.")
    return value


def _registered(version: ModelVersion, wanted: Registration) -> StatusMessage:
    source, workers = version.source, version.workers.asked
    head = f'Model "{source.name}" Version: {source.version} registered with {workers} initial workers'
    if not workers:
        return StatusMessage(f"{head}. Use scale workers API to add workers for the model.")
    return _with_missing(version, head) if wanted.synchronous else _PROCESSING


def _with_missing(version: ModelVersion, done: str) -> StatusMessage:
    """Message of what was done, or 202 with what the workers wait for: they start when it becomes free."""
    shortage = version.status.shortage
    if shortage is None:
        return StatusMessage(done)
    waiting = f"{version.workers.waiting} of {version.workers.least} wait for {shortage.resource}"
    return StatusMessage(text=f"{done}; {waiting}: {shortage.reason}", status=202)
