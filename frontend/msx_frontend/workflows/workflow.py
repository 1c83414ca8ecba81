"""A registered workflow, and the registry of workflows."""

import time
from dataclasses import dataclass, field
from functools import cached_property

from msx_core.service_errors import BadRequest, ServiceError, ServiceUnavailable
from msx_core.workflow_spec import WorkflowSpec
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import WORKFLOW, Attempts, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.job import PREDICT, STREAM, Job
from msx_frontend.management_errors import Conflict
from msx_frontend.metrics.server import TracesJobs
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.workflows.errors import WorkflowNotFound


def node_model(workflow: str, node: str) -> str:
    """The name of the model that is a node (TorchServe's)."""
    return f"{workflow}__{node}"


@dataclass(eq=False)
class Workflow:
    """`digest` is that of its unpacked archive; `versions` are the models of its nodes, by the names of the nodes."""

    name: str
    url: str
    digest: str
    spec: WorkflowSpec
    versions: dict[str, ModelVersion] = field(default_factory=dict)
    running: Running = field(default_factory=Running)
    limit: int = 0
    """The most bytes of a node's answer, which is held until all who need it have it."""

    @cached_property
    def archive(self) -> ArchiveUrl:
        return ArchiveUrl.split(self.url)

    @cached_property
    def graph(self) -> Graph:
        """Graph of its versions, when all are there."""
        dag, nodes = self.spec.dag, self.spec.nodes
        return Graph(
            {name: dag.predecessors[name] for name in dag.order},
            {name: (version.source.name, version.queue) for name, version in self.versions.items()},
            WORKFLOW._replace(limit=self.limit),
            attempts={
                name: Attempts(node.settings.retry_attempts + 1, node.settings.timeout_ms)
                for name, node in nodes.items()
            },
            leaves=dag.leaves,
        )

    def submit(self, job: Job) -> None:
        """Raises ServiceError when its first node does not take the request."""
        Execution(self.graph, job, self.running, PREDICT).begin()


class WorkflowSpans:
    """Tells of the requests to one workflow, whose nodes' spans are below theirs."""

    def __init__(self, name: str, spans: TracesJobs) -> None:
        self.labels = name, ""
        self._spans = spans

    def jobs_ended(self, jobs: list[Job]) -> None:
        self._spans.ended(jobs, time.monotonic(), self)

    def exemplify(self, seconds: float, trace: str) -> None:
        """A workflow has no histogram of its own."""


class WorkflowRegistry:
    def __init__(self, spans: TracesJobs | None = None) -> None:
        """`spans`: where requests are traced."""
        self._spans = spans
        self._workflows: dict[str, Workflow] = {}
        self._refusing = False

    def refuse_new(self) -> None:
        """The server is ending: requests are refused from now on. Running requests may finish."""
        self._refusing = True

    def check_serving(self) -> None:
        if self._refusing:
            raise ServiceUnavailable("The server is shutting down and takes no more requests.")

    def submit(self, job: Job) -> None:
        """Hand the job to the workflow that it names. Raises ServiceError."""
        self.check_serving()
        if job.kind not in (PREDICT, STREAM):
            raise BadRequest(f"Workflow {job.model_name} takes predictions alone.")
        workflow = self.find(job.model_name)
        if self._spans is not None:
            self._spans.begin(job)
            job.listener = WorkflowSpans(workflow.name, self._spans)
        workflow.submit(job)

    def find(self, name: str) -> Workflow:
        if name not in self._workflows:
            raise WorkflowNotFound(f"Workflow not found: {name}")
        return self._workflows[name]

    def check_free(self, name: str) -> None:
        if name in self._workflows:
            raise Conflict(f"Workflow {name} is already registered.")

    def names(self) -> list[str]:
        return sorted(self._workflows)

    def add(self, workflow: Workflow) -> None:
        self._workflows[workflow.name] = workflow

    def remove(self, workflow: Workflow) -> None:
        self._workflows.pop(workflow.name, None)

    def busy(self) -> bool:
        return any(workflow.running for workflow in self._workflows.values())

    def cancel_all(self, error: ServiceError) -> None:
        for workflow in self._workflows.values():
            workflow.running.cancel_all(error)
