"""The models that are served: names, versions, defaults."""

from msx_core.service_errors import ModelNotFound, ModelVersionNotFound, ServiceError, ServiceUnavailable
from msx_frontend.job import DESCRIBE, Job
from msx_frontend.management_errors import Conflict, DefaultVersionInUse, TrafficInUse
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.aliases import Aliases
from msx_frontend.models.owned_paths import OwnedPaths
from msx_frontend.models.traffic import Headers, TrafficRule, TrafficSplit
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.queueing.instances import InstanceRequest


class _Model:
    def __init__(self, default: str) -> None:
        self.default = default
        self.versions: dict[str, ModelVersion] = {}


class Registry:
    """Finds the version of a request. The first version of a name is the default until another one is set."""

    def __init__(self, metrics: ServerMetrics, enqueued: EnqueuedRequests) -> None:
        """`enqueued` is the limit for the requests of MindSpore Serving's API, which name it."""
        self.enqueued = enqueued
        self._models: dict[str, _Model] = {}
        self._ages: dict[tuple[str, str], None] = {}
        """Names and versions in the order of registration."""
        self._metrics = metrics
        self._splits: dict[str, TrafficSplit] = {}
        """Splits by the name of the model, where its traffic is divided over versions."""
        self._refusing = False
        self.aliases = Aliases(lambda: {name: [*model.versions.values()] for name, model in self._models.items()})
        self.paths = OwnedPaths(self.all_versions, self.aliases.names)

    def refuse_new(self) -> None:
        """Refuse every job from now on: the server is ending."""
        self._refusing = True

    def submit(self, job: Job) -> None:
        """Hand the job to its version. Raises ServiceError when it cannot be taken."""
        if job.model_name not in self._models:
            job.model_name = self.aliases.own_name(job.model_name)
        version = self._of_job(job) if self._splits else self.find(job.model_name, job.version)
        try:
            if self._refusing:
                raise ServiceUnavailable("The server is shutting down and takes no more requests.")
            version.queue.submit(job)
        except ServiceError as error:
            job.listener = None  # it is counted here, and not once more when its connection gives it up
            version.metrics.refused(job, error)
            raise

    def submit_instances(self, request: InstanceRequest) -> None:
        """Hand a request with its instances to its version: all of them or none. Raises ServiceError."""
        if request.model_name not in self._models:
            request.model_name = self.aliases.own_name(request.model_name)
        version = self._of_instances(request) if self._splits else self.find(request.model_name, request.version)
        try:
            if self._refusing:
                raise ServiceUnavailable("The server is shutting down and takes no more requests.")
            request.enter()
            try:
                version.queue.submit_instances(request)
            except ServiceError:
                request.leave()
                raise
        except ServiceError as error:
            version.metrics.answered(error.status)
            raise

    def choose(self, name: str, headers: Headers) -> ModelVersion:
        """The version that a request without one goes to. Raises ModelNotFound."""
        return self._chosen(name, headers) if name in self._splits else self.find(name)

    def _of_job(self, job: Job) -> ModelVersion:
        if job.version is not None or job.kind == DESCRIBE or job.model_name not in self._splits:
            return self.find(job.model_name, job.version)
        return self._chosen(job.model_name, job.headers, job)

    def _of_instances(self, request: InstanceRequest) -> ModelVersion:
        if request.version is not None or request.model_name not in self._splits:
            return self.find(request.model_name, request.version)
        return self._chosen(request.model_name, request.headers)

    def _chosen(self, name: str, headers: Headers, job: Job | None = None) -> ModelVersion:
        """A request of an open sequence goes where the sequence is; others by the weights."""
        versions = self._models[name].versions
        if job is not None:
            for version in versions.values():
                if version.config.stateful and version.queue.dispatcher.has_sequence_of(job):
                    return version
        return versions[self._splits[name].choose(headers, lambda number: versions[number].workers.answer)]

    def splits(self, name: str) -> bool:
        """Whether instances of KServe v1's requests to the default version are jobs. Raises ModelNotFound."""
        return self.find(name).config.splits_instances

    def find(self, name: str, version: str | None = None) -> ModelVersion:
        """`name` may be an alias. Raises ModelNotFound, ModelVersionNotFound."""
        model = self._models.get(name) or self._models.get(self.aliases.own_name(name))
        if model is None:
            raise ModelNotFound(name)
        found = model.versions.get(model.default if version is None else version)
        if found is None:
            raise ModelVersionNotFound(name, version or model.default)
        return found

    def versions_of(self, name: str) -> list[ModelVersion]:
        """`name` may be an alias. Raises ModelNotFound."""
        model = self._models.get(name) or self._models.get(self.aliases.own_name(name))
        if model is None:
            raise ModelNotFound(name)
        return list(model.versions.values())

    def all_versions(self) -> list[ModelVersion]:
        return [version for model in self._models.values() for version in model.versions.values()]

    def names(self) -> list[str]:
        return sorted(self._models)

    def names_by_age(self) -> list[str]:
        """Names in the order in which their oldest versions were registered. A restarted server has the same order."""
        return list(dict.fromkeys(name for name, _ in self._ages))

    def has_model(self, name: str) -> bool:
        return name in self._models

    def has(self, name: str, version: str) -> bool:
        return name in self._models and version in self._models[name].versions

    def is_default(self, version: ModelVersion) -> bool:
        model = self._models.get(version.source.name)
        return model is not None and model.default == version.source.version

    def default_of(self, name: str) -> str:
        """The number of the default version. Raises ModelNotFound."""
        self.versions_of(name)
        return self._models[name].default

    def becomes_default(self, version: ModelVersion) -> bool:
        """It is the default under its number, or is the first version of its name."""
        model = self._models.get(version.source.name)
        return model is None or model.default == version.source.version

    def holds(self, version: ModelVersion) -> bool:
        """This one is registered: neither removed nor replaced."""
        return self.has(*version.labels) and self.find(*version.labels) is version

    def add(self, version: ModelVersion) -> None:
        """Raises Conflict."""
        name, number = version.source.name, version.source.version
        if self.has(name, number):
            raise Conflict(f"Model version {number} is already registered for model {name}")
        self.paths.check(version)
        self._models.setdefault(name, _Model(number)).versions[number] = version
        self._ages[name, number] = None
        self.paths.find()
        self.aliases.put_in_force()
        self._metrics.versions += version.observed

    def replace(self, old: ModelVersion, new: ModelVersion) -> None:
        """Let requests go to `new` from now on; the caller closes `old`."""
        self._models[old.source.name].versions[old.source.version] = new
        new.figures.traffic_share = old.figures.traffic_share
        self.paths.find()
        self.aliases.put_in_force()
        self._observe_no_more(old)
        self._metrics.versions += new.observed

    def set_default(self, name: str, version: str) -> None:
        if not self.has(name, version):
            self.find(name, version)
        self._models[name].default = version
        self.aliases.names.changed()

    def traffic(self, name: str) -> TrafficRule | None:
        """How the model's traffic is divided; None: all goes to the default version. Raises ModelNotFound."""
        split = self._splits.get(self.find(name).source.name)
        return split.rule if split is not None else None

    def check_traffic(self, name: str, rule: TrafficRule | None) -> None:
        """Raises ModelNotFound, ModelVersionNotFound."""
        known = {version.source.version for version in self.versions_of(name)}
        for number in rule.weights if rule else ():
            if number not in known:
                raise ModelVersionNotFound(name, number)

    def divide(self, name: str, rule: TrafficRule | None) -> None:
        """Divide the traffic by the rule, or no longer. Raises ModelNotFound, ModelVersionNotFound."""
        self.check_traffic(name, rule)
        self._splits.pop(name, None)
        if rule is not None:
            self._splits[name] = TrafficSplit(rule, lambda number: self._metrics.diverted.labels(name, number).inc())
        for number, version in self._models[name].versions.items():
            version.figures.traffic_share = rule.share(number) if rule else None

    def rule_without(self, version: ModelVersion) -> TrafficRule | None:
        """How the model's traffic is divided once this version is gone."""
        split = self._splits.get(version.source.name)
        return split.rule.without(version.source.version) if split is not None else None

    def check_removable(self, version: ModelVersion) -> None:
        name, number = version.labels
        rule = self._splits[name].rule if name in self._splits else None
        if rule is not None and rule.weights.get(number) and len(self._models[name].versions) > 1:
            raise TrafficInUse(name, number, rule.share(number))
        if self.is_default(version) and len(self._models[name].versions) > 1:
            raise DefaultVersionInUse(name)

    def remove(self, version: ModelVersion) -> None:
        """Its traffic goes to the others. Where it was the default, the oldest of them is."""
        if not self.holds(version):
            return
        (name, number), rule = version.labels, self.rule_without(version)
        model = self._models[name]
        del model.versions[number]
        del self._ages[name, number]
        self._observe_no_more(version)
        if not model.versions:
            del self._models[name]
            self._splits.pop(name, None)
        self.paths.find()
        self.aliases.put_in_force()
        if not model.versions:
            return
        if model.default == number:
            model.default = next(iter(model.versions))
        self.divide(name, rule)

    def _observe_no_more(self, version: ModelVersion) -> None:
        for one in version.observed:
            self._metrics.versions.remove(one)
