"""docs/from-torchserve.md says of each of TorchServe's keys, flags and endpoints what has become of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_frontend.apis.probes.family import PATHS as PROBES
from msx_frontend.config import ServerConfig
from msx_frontend.config.keys import ALIASES, WITHOUT_MEANING
from msx_net.http.failures import no_route
from tests.frontend.apis.families import all_families

TORCHSERVES = [family for family in all_families() if family.closes_on_error]

PAGE = (Path(__file__).parents[2] / "docs" / "from-torchserve.md").read_text()
NAMED = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))

TORCHSERVES_TEXTS = {
    "Requested resource is not found, please refer to API document.",
    "Requested method is not allowed, please refer to API document.",
}

OWN = {  # keys that TorchServe does not have
    *("download_timeout", "drain_timeout", "install_py_dep_timeout", "log_config", "max_download_size"),
    *("number_of_npu", "snapshot_serializer", "snapshots"),
}
KEYS = sorted(({*ServerConfig.__struct_fields__} - OWN) | {*ALIASES, *WITHOUT_MEANING})

YAML = [
    "minWorkers",
    "maxWorkers",
    "batchSize",
    "maxBatchDelay",
    "responseTimeout",
    "startupTimeout",
    "deviceType",
    "deviceIds",
    "parallelType",
    "parallelLevel",
    "torchrun",
    "maxRetryTimeoutInSec",
    "clientTimeoutInMills",
    "jobQueueSize",
    "useJobTicket",
    "sequenceBatching",
    "sequenceMaxIdleMSec",
    "sequenceTimeoutMSec",
    "maxNumSequence",
    "maxSequenceJobQueueSize",
    "continuousBatching",
    "asyncCommunication",
    "useVenv",
    "handler",
    "pt2",
    "micro_batching",
    "pippy",
    "deepspeed",
]

FLAGS = [
    "--start",
    "--stop",
    "-v",
    "--version",
    "--ts-config",
    "--model-store",
    "--workflow-store",
    "--models",
    "--log-config",
    "--cpp-log-config",
    "--foreground",
    "--no-config-snapshots",
    "--ncs",
    "--plugins-path",
    "--ppath",
    "--disable-token-auth",
    "--dt",
    "--enable-model-api",
]

CALLS = ["Ping", "Predictions", "StreamPredictions", "StreamPredictions2"]


@pytest.mark.parametrize("name", [*KEYS, *YAML, *FLAGS, *CALLS])
def test_each_key_flag_and_call(name: str) -> None:
    assert name in NAMED


@pytest.mark.parametrize(
    "path", sorted({route.path for family in TORCHSERVES for route in family.routes if route.operation} - PROBES)
)
def test_each_endpoint(path: str) -> None:
    """By its beginning: the page writes what is optional in brackets."""
    beginning = re.split(r"[{:]", path)[0].rstrip("/")
    assert any(beginning in name for name in NAMED)


def test_texts_that_say_more_than_torchserves_are_not_called_the_same() -> None:
    (state,) = re.findall(r"^\|.*405 and 404 texts.*\| (.*) \|$", PAGE, re.MULTILINE)
    said = [str(no_route("GET", "/a", allowed)) for allowed in ((), ("POST",))]
    assert any(text not in TORCHSERVES_TEXTS for text in said) == ("second sentence" in state)


def test_no_key_stands_there_that_neither_server_has() -> None:
    table = PAGE.partition("## config.properties")[2].partition("## model-config.yaml")[0]
    keys = {key for row in re.findall(r"^\| (`.*?) \|", table, re.M) for key in re.findall(r"`(\w+)`", row)}
    assert keys <= {*KEYS}
