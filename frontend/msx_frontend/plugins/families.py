"""An API family: routes over HTTP, a `ServedApi`, the jobs that they submit, and where their answers go."""

from msx_core.replies.sink import Cancellable, Sink
from msx_core.service_errors import ServiceError
from msx_frontend.apis.served_api import ServedApi
from msx_frontend.config import ServerConfig
from msx_frontend.job import Field, Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.keys.key import Key
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.queueing.instances import InstanceAnswer, InstanceReply, InstanceRequest, InstancesSink
from msx_frontend.queueing.refusals import too_large
from msx_net.http.family import Failure, Family, JobRoute, JobTemplate, Names, Reply, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.request import Request

__all__ = [
    "Cancellable",
    "Failure",
    "Family",
    "Field",
    "Head",
    "InstanceAnswer",
    "InstanceReply",
    "InstanceRequest",
    "InstancesSink",
    "Job",
    "JobRoute",
    "JobTemplate",
    "KeptHeaders",
    "Key",
    "ModelVersion",
    "Names",
    "Registry",
    "Reply",
    "ReplySink",
    "Request",
    "Route",
    "ServedApi",
    "ServerConfig",
    "ServiceError",
    "Sink",
    "too_large",
]
