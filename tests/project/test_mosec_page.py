"""docs/from-mosec.md says of each of Mosec's names what has become of it, and its example runs."""

from __future__ import annotations

import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.config import parse_model_config
from msx_core.safe_yaml import read_yaml
from msx_frontend.assembly.families import with_encodings
from msx_frontend.config import ServerConfig
from msx_sdk import Handler
from msx_sdk.testing import LocalModel
from tests.e2e import test_mosec_examples
from tests.e2e.test_mosec_examples import EXAMPLES
from tests.frontend.apis.families import all_families

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


ROWS = dict(re.findall(r"^\| `([^`]+)`.*? \| (.*) \|$", PAGE, re.MULTILINE))


def test_compression_is_what_two_keys_do_for_every_family() -> None:
    assert "`compression: true`" in ROWS["--compression"]
    written = re.findall(r"(\w+)=true", ROWS["--compression"])
    config = msgspec.structs.replace(ServerConfig(), **dict.fromkeys(written, True))
    families = [with_encodings(family, config) for family in all_families()]
    assert [one.name for one in families if not (one.decompress_requests and one.compress_replies)] == []


def test_an_example_that_is_a_dict() -> None:
    """As the row writes it: the handler is given what a request with that body gives it."""
    seen: list[Any] = []

    class Shown(Handler):
        def inference(self, inputs: list[Any]) -> list[Any]:
            seen.extend(inputs)
            return inputs

    (written,) = re.findall(r"`example = ({.*?})`", ROWS["example"])
    Shown.example = msgspec.json.decode(written)
    with LocalModel(Shown, config={"bodies": "json"}) as model:
        model.predict([Shown.example])
    assert seen[0] == seen[1] == {"body": {"text": "warm"}}


def test_the_handlers_that_the_page_offers_are_there() -> None:
    offered = re.findall(r"`--handler (\w+)`", PAGE)
    assert offered
    assert {*offered} <= {point.name for point in entry_points(group="msx.handlers")}


def test_each_example_has_a_test() -> None:
    """Whose keys are those that its row names."""
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?) \| .*\|$", PAGE[PAGE.index("## The examples") :].partition("\n## ")[0], re.MULTILINE
    )
    assert sorted(name for name, _ in rows) == sorted(EXAMPLES)
    for name, said in rows:
        assert callable(getattr(test_mosec_examples, f"test_{name}"))
        config = EXAMPLES[name].config()
        kinds = {value for key in ("bodies", "replies") for value in _values(config, key)}
        assert kinds == {kind for kind in ("json", "msgpack", "raw", "events") if re.search(rf"\b{kind}\b", said)}, name
        assert {f"batchSize: {size}" for size in _values(config, "batchSize")} >= {*re.findall(r"batchSize: \d+", said)}
        assert ("compression" in said) == bool(_values(config, "compression"))


def _values(config: Any, key: str) -> list[Any]:
    """All values of a key, at any depth."""
    if not isinstance(config, dict):
        return []
    below = [value for one in config.values() for value in _values(one, key)]
    return [config[key], *below] if key in config else below


def test_our_side_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    loads = "\n\ndef load():\n    return lambda texts: [text.upper() for text in texts]\n"
    (tmp_path / "service.py").write_text(BLOCKS["service.py"] + loads)
    (tmp_path / "model-config.yaml").write_text(BLOCKS["model-config.yaml"])
    config, warnings = parse_model_config(read_yaml(tmp_path / "model-config.yaml"))
    assert warnings == []
    assert config.pipeline is not None
    with LocalModel("service.py", tmp_path, config=config.pipeline.stages["capitals"].config.raw) as model:
        (reply,) = model.predict([msgspec.msgpack.encode({"text": "sea"})])
    assert reply.msgpack() == {"text": "SEA"}
    assert [*config.pipeline.routes] == ["/inference"]
