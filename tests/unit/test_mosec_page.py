"""docs/from-mosec.md says of each of Mosec's names what has become of it, and its example runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

from msx_sdk._internal.config import parse_model_config
from msx_sdk._internal.safe_yaml import read_yaml
from msx_sdk.testing import LocalModel

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "from-mosec.md").read_text()
NAMED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
BLOCKS = dict(re.findall(r"^```\w+\n# Here: (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))

NAMES = [
    *("Server()", "run()", "append_worker", "register_runtime", "register_daemon", "Runtime"),
    *("num", "max_batch_size", "max_wait_time", "start_method", "env", "timeout", "route"),
    *("Worker", "forward", "deserialize", "serialize", "serialize_ipc", "deserialize_ipc", "example", "multi_examples"),
    *("worker_id", "stage", "req_mime_type", "resp_mime_type", "get_forward_json_schema", "get_logger"),
    *("SSEWorker", "send_stream_event", "MsgpackMixin", "TypedMsgPackMixin", "NumBinIPCMixin", "PlasmaShmIPCMixin"),
    *("RedisShmIPCMixin", "set_redis_url"),
    *("ClientError", "DecodingError", "ValidationError", "ServerError", "EncodingError", "MosecTimeoutError"),
    *("--path", "--capacity", "--timeout", "--wait", "--address", "--port", "--namespace", "--debug", "--log-level"),
    *("--dry-run", "--compression", "--max-request-size", "MOSEC_"),
    *("/metrics", "/openapi/metadata.json", "/openapi/swagger/", "/inference"),
    *("throughput_total", "process_duration_second", "batch_size", "batch_duration_second", "remaining_task"),
]


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_there(name: str) -> None:
    assert any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in NAMED)


@pytest.mark.parametrize("name", sorted({name for name in NAMED if name.startswith("msx_") and "." not in name}))
def test_each_metric_is_one_of_ours(name: str) -> None:
    assert f"`{name}`" in (DOCS / "metrics.md").read_text()


def test_our_side_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    loads = "\n\ndef load():\n    return lambda texts: [text.upper() for text in texts]\n"
    (tmp_path / "service.py").write_text(BLOCKS["service.py"] + loads)
    with LocalModel("service.py", tmp_path) as model:
        (reply,) = model.predict([msgspec.json.encode({"text": "sea"})], headers={"Accept": "application/msgpack"})
    assert reply.msgpack() == {"text": "SEA"}
    (tmp_path / "model-config.yaml").write_text(BLOCKS["model-config.yaml"])
    config, warnings = parse_model_config(read_yaml(tmp_path / "model-config.yaml"))
    assert warnings == []
    assert [*config.raw["routes"]] == ["/inference"]
