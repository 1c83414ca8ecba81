"""The APIs that the server speaks over HTTP: the one list. A new API is a folder under `apis/` and a line here."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msx_frontend.apis.adapters.family import adapters_api
from msx_frontend.apis.aliases.family import aliases
from msx_frontend.apis.anthropic.family import anthropic
from msx_frontend.apis.cluster.family import cluster_api
from msx_frontend.apis.cohere.family import cohere
from msx_frontend.apis.console.console import ServerConsole
from msx_frontend.apis.console.family import console, playground
from msx_frontend.apis.jobs.family import jobs_api, jobs_management
from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.family import kserve_generate, kserve_v2
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.llm_serving.family import llm_serving
from msx_frontend.apis.ollama.family import ollama
from msx_frontend.apis.openai.family import openai
from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.apis.openai.late_management import batches_management
from msx_frontend.apis.openai.model_paths import openai_of_models
from msx_frontend.apis.openapi.browser import DOCS
from msx_frontend.apis.openapi.family import PATH as OPENAPI_PATH
from msx_frontend.apis.plugins.apps import UserApps
from msx_frontend.apis.plugins.family import PluginEndpoints
from msx_frontend.apis.probes.family import Probes
from msx_frontend.apis.served_api import ServedApi
from msx_frontend.apis.sleep.family import sleep
from msx_frontend.apis.tei.family import tei
from msx_frontend.apis.tgi.family import tgi
from msx_frontend.apis.torchserve.description import described
from msx_frontend.apis.torchserve.management import management
from msx_frontend.apis.torchserve.metrics import METRICS_PATH, metrics_api
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.apis.traffic.family import traffic
from msx_frontend.apis.vllm.family import vllm
from msx_frontend.apis.workflows.family import workflow_management, workflow_predictions
from msx_frontend.assembly.late_work import LateWork
from msx_frontend.config import ServerConfig
from msx_frontend.generation.text_models import TextModels
from msx_frontend.keys.tokens import Tokens
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.health import Health
from msx_frontend.models.loaded_adapters import LoadedAdapters
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.registry import Registry
from msx_frontend.store.store import Store
from msx_frontend.workers.workplace import Report
from msx_frontend.workflows.api import WorkflowApi
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.http.family import Family


class Parts(NamedTuple):
    """Parts that families are made of. `tokens` is None when authorization is off."""

    config: ServerConfig
    registry: Registry
    health: Health
    tokens: Tokens | None
    repository: Repository
    predictions: Predictions
    models: ModelApi
    workflows: WorkflowRegistry
    workflow_api: WorkflowApi
    metrics: ServerMetrics
    plugins: PluginEndpoints
    apps: UserApps
    texts: TextModels
    adapters: LoadedAdapters
    apis: Sequence[ServedApi]
    cluster: Report | None = None
    console: ServerConsole | None = None
    store: Store | None = None
    late: LateWork = LateWork()


def families(parts: Parts) -> Sequence[Family]:
    """TorchServe's first: it says errors of paths that belong to no family. Raises PluginError."""
    config, probes = parts.config, Probes(parts.health)
    answers = Answers(parts.registry, parts.health, parts.repository)
    own = [
        parts.predictions.family(),
        probes.inference(),
        probes.management(),
        workflow_predictions(parts.workflows.submit),
        workflow_management(parts.workflow_api),
        openai(parts.texts, KeptResponses.of(config, parts.store), parts.late.jobs, parts.late.batches),
        openai_of_models(parts.texts),
        anthropic(parts.texts),
        ollama(parts.texts),
        cohere(parts.texts),
        vllm(parts.texts),
        tgi(parts.texts),
        tei(parts.texts),
        kserve_v2(answers, parts.registry.submit, config.max_response_size),
        kserve_generate(parts.texts),
        *(family for api in parts.apis for family in api.families(config, parts.registry)),
        management(parts.models, parts.tokens),
        cluster_api(parts.cluster),
        traffic(parts.models),
        aliases(parts.models),
        adapters_api(parts.registry, parts.adapters),
        sleep(parts.models),
        jobs_api(parts.late.jobs),
        jobs_management(parts.late.jobs),
        batches_management(parts.late.batches),
        llm_serving(parts.texts),  # behind management, whose routes of the same paths win
    ]
    if parts.console is not None:
        own += [console(parts.console), playground(parts.console)]
    if config.enable_metrics_api:
        own.append(metrics_api(parts.metrics))
    own += parts.apps.families()
    every = [*own, *parts.plugins.families(first_segments(own))]
    return [with_encodings(family, config) for family in every]


def first_segments(families: Collection[Family]) -> set[str]:
    """First segments of the server's own paths, which plugins cannot use."""
    routes = [route.path for family in (*families, described(())) for route in family.routes]
    literal = {path.split("/")[1] for path in (*routes, OPENAPI_PATH, METRICS_PATH)}
    owned = {DOCS[1:], *(segment for family in families for segment in family.owns)}
    return {*(one for one in literal if not one.startswith("{")), *owned} - {""}


def with_encodings(family: Family, config: ServerConfig) -> Family:
    """`decompress_requests`: without it each family has its own rule; true is for all; false is for none.

    `compress_replies` adds all families to those that compress replies anyway.
    """
    family = family._replace(compress_replies=family.compress_replies or config.compress_replies)
    wanted = config.decompress_requests
    if wanted is None:
        return family
    return family._replace(decompress_requests=wanted, takes_as_sent=family.takes_as_sent and not wanted)
