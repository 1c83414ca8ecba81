"""The HTTP listeners of a server: which routes each of them has, and whose keys it asks for."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from starlette.types import ASGIApp

from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.torchserve.inference import InferenceRoutes
from msx_frontend.apis.torchserve.management import ManagementRoutes
from msx_frontend.apis.torchserve.merged import merged_app
from msx_frontend.apis.torchserve.metrics import metrics_app, metrics_routes
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.apis.workflows import routes as workflow_routes
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.families import Parts, families
from msx_frontend.assembly.served_models import ServedModels
from msx_frontend.assembly.unconverted import Unconverted
from msx_frontend.config import ServerConfig
from msx_frontend.generation.endpoint import LanguageModels
from msx_frontend.keys.key import Kind
from msx_frontend.models.model_api import ModelApi
from msx_frontend.net.http.exchange import Exchange
from msx_frontend.net.http.family import ListenerName
from msx_frontend.net.http.gate import Gate, inference_keys, management_keys, merged_keys
from msx_frontend.net.http.head import Head
from msx_frontend.net.http.listener import Listener
from msx_frontend.net.http.router import Router
from msx_frontend.net.http.wire import RawHeaders
from msx_frontend.workflows.api import WorkflowApi


class HttpFront:
    """Inference, management and metrics: a listener each, or one for the first two and all three's routes."""

    def __init__(self, context: ServerContext, models: ServedModels) -> None:
        config, registry, health, management = context.config, context.registry, context.health, models.management
        self._config = config
        self._registry = registry
        self._health = health
        self._tokens = context.keys.tokens
        self._tls = context.tls
        self._workflows = models.workflows
        self._plugins = context.plugins
        self._metrics = context.monitoring.metrics
        self._replies = context.monitoring.counted(context.access_log, by_key=context.keys.named)
        self._cors, self._held = _cors(config), context.held
        self.predictions = Predictions(registry.submit, registry.find)
        self.model_api = ModelApi(management, enabled=config.enable_model_api)
        self.repository = Repository(management, enabled=config.enable_model_api)
        parts = Parts(registry, health, self.repository, self.predictions, config.max_response_size)
        self.families = families(parts)

    def listen(self) -> list[Listener]:
        """Bound, not started. Raises ListenError; then none of them is bound."""
        bound: list[Listener] = []
        try:
            for name, exchange in self._exchanges().items():
                address, direct = getattr(self._config, f"{name}_address"), self._config.direct_predictions
                bound.append(
                    Listener(name, address, exchange, self._context(name), exchange.direct() if direct else None)
                )
        except BaseException:
            for listener in bound:
                listener.close()
            raise
        return bound

    def _context(self, listener: str) -> ssl.SSLContext | None:
        tls = self._tls and self._tls.of(listener)
        return tls.context() if tls else None

    def _exchanges(self) -> dict[str, Exchange]:
        config = self._config
        found = (
            {"inference": self._exchange(self._merged(), "inference", "management", "metrics")}
            if config.merged
            else {
                "inference": self._exchange(self._inference(), "inference"),
                "management": self._exchange(self._management(), "management"),
            }
        )
        if config.enable_metrics_api:
            metrics = Unconverted(self._metrics_app(), self.families[0])
            found["metrics"] = self._exchange(metrics, "metrics")
        return found

    def _exchange(self, unconverted: Unconverted, *listeners: ListenerName) -> Exchange:
        """Of one listener, which has the families of these."""
        own = [family for family in self.families if family.listener in listeners]
        return Exchange(
            Router(own, default=self.families[0]),
            self._replies,
            limit=self._config.max_request_size,
            tokens=self._tokens,
            cors=self._cors,
            held=self._held,
            unconverted=unconverted,
        )

    # -- a listener each --

    def _inference(self) -> Unconverted:
        return self._speaking(self._inference_routes().app(), self._gate(inference_keys, "inference"))

    def _merged(self) -> Unconverted:
        metrics = metrics_routes(self._metrics) if self._config.enable_metrics_api else []
        metrics += self._plugins.of("metrics").routes
        app = merged_app(self._inference_routes(), self._management_routes(), metrics)
        return self._speaking(app, self._gate(merged_keys, "inference", "management", "metrics"))

    def _management(self) -> Unconverted:
        gate = self._gate(management_keys, "management")
        return Unconverted(self._management_routes().app(), self.families[0], gate=gate)

    def _speaking(self, app: ASGIApp, gate: Gate | None) -> Unconverted:
        limit, tokens = self._config.max_request_size, self._tokens
        check_token = None if tokens is None else lambda given: tokens.check("inference", given)
        language_models = LanguageModels(self._registry, limit, check_token, self._config.default_llm or "")
        return Unconverted(app, self.families[0], gate=gate, language_models=language_models)

    def _metrics_app(self) -> ASGIApp:
        plugins = self._plugins.of("metrics")
        return metrics_app(self._metrics, plugins.routes, plugins.operations)

    # -- their routes --

    def _inference_routes(self) -> InferenceRoutes:
        sizes = self._config.max_request_size, self._config.max_response_size
        workflows = workflow_routes.inference_routes(self._workflows.registry, *sizes)
        plugins = self._plugins.of("inference")
        return InferenceRoutes(self._health, [*workflows, *plugins.routes], plugins.operations)

    def _management_routes(self) -> ManagementRoutes:
        config, plugins = self._config, self._plugins.of("management")
        workflows = WorkflowApi(self._workflows, enabled=config.enable_model_api)
        return ManagementRoutes(
            self.model_api,
            self._health,
            self._tokens,
            max_request_size=config.max_request_size,
            more=[*workflow_routes.management_routes(workflows, config.max_request_size), *plugins.routes],
            described=plugins.operations,
        )

    def _gate(self, keys: Callable[[Head], tuple[Kind, ...]], *listeners: str) -> Gate | None:
        return None if self._tokens is None else Gate(self._tokens, keys, self._plugins.keys(*listeners))


def _cors(config: ServerConfig) -> RawHeaders:
    """The configured texts, verbatim, on every reply (TorchServe has no preflight logic)."""
    if not config.cors_allowed_origin:
        return []
    texts = {
        b"access-control-allow-origin": config.cors_allowed_origin,
        b"access-control-allow-methods": config.cors_allowed_methods,
        b"access-control-allow-headers": config.cors_allowed_headers,
    }
    return [(name, text.encode()) for name, text in texts.items() if text]
