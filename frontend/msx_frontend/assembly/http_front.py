"""The HTTP listeners of a server: which routes each of them has, and whose keys it asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from msx_core.elements import limit_to
from msx_core.kserve.types import Signature
from msx_frontend.apis.console.console import ServerConsole
from msx_frontend.apis.console.parts import Sources
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.openapi.family import openapi
from msx_frontend.apis.openapi.models import DescribedModel
from msx_frontend.apis.torchserve.description import described
from msx_frontend.apis.torchserve.model_paths import ModelPaths
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.families import Parts, families
from msx_frontend.assembly.late_work import LateWork
from msx_frontend.assembly.served_models import ServedModels
from msx_frontend.assembly.without_keys import page_guard
from msx_frontend.config.connections import connection_limits
from msx_frontend.config.tls_listeners import HTTP
from msx_frontend.deferred.accepting import Acceptance
from msx_frontend.generation.images.limits import ImageLimits
from msx_frontend.generation.text_models import TextModels
from msx_frontend.keys.key import KINDS
from msx_frontend.keys.tokens import Tokens
from msx_frontend.models.adapter_folder import AdapterFolder
from msx_frontend.models.loaded_adapters import LoadedAdapters
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.schemas.body import body_schemas
from msx_frontend.workflows.api import WorkflowApi
from msx_net.http.cors import Cors
from msx_net.http.direct import Direct
from msx_net.http.exchange import Exchange
from msx_net.http.family import Family, ListenerName
from msx_net.http.router import Router
from msx_net.http.v2.listener import RestHttp2
from msx_net.keys import Kind
from msx_net.listening.listener import Listener, ListenerContext

if TYPE_CHECKING:
    from msx_net.grpc.direct.port_calls import PortCalls


class HttpFront:
    """Inference, management and metrics: a listener each, or one for the first two and all three's routes."""

    def __init__(self, context: ServerContext, models: ServedModels) -> None:
        config, registry, management = context.config, context.registry, models.management
        self._config, self._registry = config, registry
        self._tokens = context.keys.tokens
        self._tls = context.tls
        self._connections, self._heartbeats = context.connections, context.heartbeats
        self._kept = context.kept_sockets
        self._replies = context.monitoring.counted(context.access_log, by_key=context.keys.named)
        self._cors = Cors(
            config.cors_allowed_origin or "",
            config.cors_allowed_methods or "",
            config.cors_allowed_headers or "",
        )
        self.guard = page_guard(config, self._cors) if self._tokens is None else None
        self._held = context.held
        limit_to(config.max_request_elements)
        self._http2: dict[str, RestHttp2] = {}
        self._directs: dict[str, Direct] = {}
        self.predictions = Predictions(
            registry.submit, registry.find, registry, sent_packed=not config.decompress_requests
        )
        self.model_api = ModelApi(management, enabled=config.enable_model_api)
        self.repository = Repository(management, enabled=config.enable_model_api)
        self.console = self._console(context, models) if config.enable_console else None
        self.late = LateWork.of(context)
        if self.late.jobs is not None:
            context.monitoring.metrics.jobs.show(self.late.jobs.figures)
        if self.late.batches is not None:
            context.monitoring.metrics.batches.show(self.late.batches.figures)
        self.families = families(
            Parts(
                config=config,
                registry=registry,
                health=models.health,
                tokens=context.keys.tokens,
                repository=self.repository,
                predictions=self.predictions,
                texts=TextModels(
                    registry, config.default_llm or "", config.text_limits, self._heartbeats, ImageLimits.of(config)
                ),
                adapters=LoadedAdapters(management, AdapterFolder(config)),
                apis=context.apis,
                models=self.model_api,
                workflows=models.workflows.registry,
                workflow_api=WorkflowApi(models.workflows, enabled=config.enable_model_api),
                metrics=context.monitoring.metrics,
                plugins=context.plugins,
                apps=context.apps,
                cluster=models.cluster_report,
                console=self.console,
                store=context.store,
                late=self.late,
            )
        )

    def _console(self, context: ServerContext, models: ServedModels) -> ServerConsole:
        metrics = context.monitoring.metrics
        sources = Sources(
            context.config, context.registry, models.health, metrics, models.devices, models.cluster_report
        )
        return ServerConsole(sources, self.model_api, context.keys.tokens)

    def listen(self, names: Collection[str] = HTTP) -> list[Listener]:
        """Bind the listeners of these names that the settings do not merge or switch off, not started. Raises
        ListenError; then none of them is bound."""
        bound: list[Listener] = []
        config, limits = self._config, connection_limits(self._config)
        context = ListenerContext(limits, self._connections, self._kept)
        try:
            for name, exchange in self._exchanges(names).items():
                address = getattr(config, f"{name}_address")
                direct = self._directs[name] = exchange.direct()
                tls = None if self._tls is None else self._tls.of(name)
                http2 = self._http2[name] = RestHttp2(exchange, direct, limits, config.max_request_size)
                bound.append(Listener(name, address, exchange, tls, direct, http2=http2, context=context))
        except BaseException:
            for listener in bound:
                listener.close()
            raise
        return bound

    async def begin_late_work(self, elsewhere: Collection[str] = ()) -> None:
        """Run what was deferred, as requests of the inference listener; but for jobs that run `elsewhere`."""
        await self.late.begin(self._directs.get("inference"), elsewhere)

    def answer_calls(self, calls_of: Callable[[Collection[str]], PortCalls]) -> Iterator[PortCalls]:
        """Each listener answers the gRPC services of its own kind, or kinds; yields them."""
        for name, http2 in self._http2.items():
            kinds: Collection[str] = KINDS if self._config.merged else (name,)
            if name in KINDS:
                calls = calls_of(kinds)
                http2.answer_calls(calls)
                yield calls

    def family(self, name: str) -> Family:
        """The family of this name."""
        return next(one for one in self.families if one.name == name)

    def open_to_all(self, family: Family, limit: int) -> Exchange:
        """Serve only this family, on a listener that asks for no key. `limit` is in bytes of a body."""
        router = Router([family], family)
        return Exchange(router, self._replies, limit=limit, held=self._held, heartbeats=self._heartbeats)

    def _exchanges(self, names: Collection[str]) -> dict[str, Exchange]:
        config = self._config
        found = (
            {"inference": self._exchange("inference", "management", "metrics")}
            if config.merged
            else {"inference": self._exchange("inference"), "management": self._exchange("management")}
        )
        if config.enable_metrics_api:
            found["metrics"] = self._exchange("metrics")
        return {name: exchange for name, exchange in found.items() if name in names}

    def _exchange(self, *listeners: ListenerName) -> Exchange:
        """Exchange of one listener, with the families of all of these. A listener for metrics alone needs no key."""
        own = [family for family in self.families if family.listener in listeners]
        own = [described(own)._replace(listener=listeners[0]), *own]
        further = None
        if "inference" in listeners:
            owner_of, declares = self._registry.paths.owners.get, self.predictions.declared
            further = ModelPaths(self.families[0], owner_of, self._registry.submit, declares).match
        every, names = [self._openapi(listeners, own), *own], self._registry.aliases.names
        router = Router(every, self.families[0], _unknown(listeners), further, names)
        if "inference" in listeners:
            self._registry.paths.keep_free(router)
        return Exchange(
            router,
            self._replies,
            limit=self._config.max_request_size,
            tokens=self._tokens_of(listeners),
            cors=self._cors,
            held=self._held.public if listeners == ("metrics",) else self._held,
            guard=self.guard,
            heartbeats=self._heartbeats,
            defers=self._defers if "inference" in listeners else None,
        )

    def _openapi(self, listeners: tuple[ListenerName, ...], own: list[Family]) -> Family:
        title = f"MSX {', '.join(listeners)} API"
        made = openapi(title, own, self._described_models, self._tokens_of(listeners))
        return made._replace(listener=listeners[0])

    @property
    def _defers(self) -> Acceptance | None:
        return None if self.late.jobs is None else Acceptance(self.late.jobs)

    def _tokens_of(self, listeners: tuple[ListenerName, ...]) -> Tokens | None:
        return None if listeners == ("metrics",) else self._tokens

    def _described_models(self) -> Iterator[DescribedModel]:
        """Default versions of whose bodies something is known."""
        for name in self._registry.names():
            schema = self._registry.find(name).schema
            if any(body_schemas(schema.signature, schema.methods)):
                yield DescribedModel(name, schema.signature or Signature(), schema.methods or ())


def _unknown(listeners: tuple[ListenerName, ...]) -> tuple[Kind, ...]:
    """The kinds of keys that may ask for what is not there: TorchServe asks for a key first."""
    return tuple(kind for kind in KINDS if kind in listeners)
