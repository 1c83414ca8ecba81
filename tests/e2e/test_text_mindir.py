"""A Llama that its example exports as two MindIR files speaks OpenAI's and TGI's APIs, with the network's own words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.llama import EXAMPLE
from tests.e2e.server import RunningServer, new_store, run_server, wait_until
from tests.mindspore_scripts import run_mindspore

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

PROMPTS = ["Exceptions are", "An object", "The with statement", "Modules are", "Sets", "A class"]
COUNT = 16
GREEDY = """
import json, sys
sys.path.insert(0, {example!r})
from pathlib import Path
from export import export, greedy, trained
from tokenizers import Tokenizer
export(Path({folder!r}))
tokenizer = Tokenizer.from_file({example!r} + "/tokenizer.json")
prompts = [tokenizer.encode(prompt).ids for prompt in {prompts!r}]
for known, made in zip(prompts, greedy(trained(), prompts, {count})):
    made = made[: made.index(1)] if 1 in made else made
    print(json.dumps(tokenizer.decode(known + made)[len(tokenizer.decode(known)) :]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text-mindir")


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, str]:
    """The texts of the network, run in Python without a cache; its export on the way."""
    code = GREEDY.format(example=str(EXAMPLE), folder=str(folder / "build"), prompts=PROMPTS, count=COUNT)
    (folder / "greedy.py").write_text(code)
    lines = [line for line in run_mindspore(folder / "greedy.py", folder=folder).splitlines() if line.startswith('"')]
    return dict(zip(PROMPTS, map(json.loads, lines), strict=True))


@pytest.fixture(scope="module")
def server(folder: Path, expected: dict[str, str]) -> Iterator[RunningServer]:
    names = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
    pack(
        PackOptions(
            model_name="llama",
            version="1.0",
            handler="text_generation_mindir",
            serialized_file=str(folder / "build/prefill.mindir"),
            config_file=str(EXAMPLE / "model-config-mindir.yaml"),
            extra_files=",".join([str(folder / "build/increment.mindir"), *(str(EXAMPLE / name) for name in names)]),
            export_path=new_store(folder),
        )
    )
    with run_server(folder, "--models", "llama.mar") as running:
        yield running


def complete(server: RunningServer, prompt: str, **body: Any) -> Any:
    asked = {"model": "llama", "prompt": prompt, "max_tokens": COUNT, "temperature": 0, **body}
    reply = server.inference.post("/v1/completions", json=asked)
    return reply.json() if reply.status_code == 200 else (reply.status_code, reply.json()["error"]["message"])


def test_more_texts_than_a_step_holds(server: RunningServer, expected: dict[str, str]) -> None:
    with ThreadPoolExecutor(len(PROMPTS)) as clients:
        replies = list(clients.map(lambda prompt: complete(server, prompt), PROMPTS))
    assert {prompt: one["choices"][0]["text"] for prompt, one in zip(PROMPTS, replies, strict=True)} == expected


def test_tgi(server: RunningServer, expected: dict[str, str]) -> None:
    asked = {"inputs": PROMPTS[0], "parameters": {"max_new_tokens": COUNT}}
    assert server.inference.post("/generate", json=asked).json()["generated_text"] == expected[PROMPTS[0]]
    with server.inference.stream("POST", "/generate_stream", json=asked) as reply:
        events = [json.loads(line[5:]) for line in reply.iter_lines() if line.startswith("data:")]
    assert "".join(event["token"]["text"] for event in events) == expected[PROMPTS[0]]
    assert len(events) == COUNT


def test_stops_and_samples(server: RunningServer, expected: dict[str, str]) -> None:
    text = expected[PROMPTS[0]]
    stop = text.split()[3]
    choice = complete(server, PROMPTS[0], stop=[stop])["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == (text.partition(stop)[0], "stop")
    seeded = [complete(server, "Sets", temperature=1, seed=5, n=2)["choices"] for _ in range(2)]
    assert [one["text"] for one in seeded[0]] == [one["text"] for one in seeded[1]]


def test_the_yaml_of_llm_serving(folder: Path, expected: dict[str, str], tmp_path: Path) -> None:
    """The same pair, by the file with which llm-serving starts it, and with a body of its clients."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(EXAMPLE / name, tmp_path)
    build = folder / "build"
    config = {
        "model_path": {
            "prefill_model": [str(build / "prefill.mindir")],
            "decode_model": [str(build / "increment.mindir")],
            "argmax_model": "argmax.mindir",
            "topk_model": "topk.mindir",
        },
        "model_config": {"model_name": "llama_dyn", "end_token": 1, "seq_length": [256]},
        "serving_config": {"agent_ports": [13000], "server_ip": "127.0.0.1", "server_port": 19280},
        "tokenizer": {"type": "LlamaTokenizer", "vocab_file": str(tmp_path / "tokenizer.model")},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    new_store(tmp_path)
    with run_server(tmp_path, "--llm-serving", str(tmp_path / "config.yaml")) as running:
        asked = {"inputs": PROMPTS[0], "parameters": {"max_new_tokens": str(COUNT), "do_sample": "False"}}
        reply = running.inference.post("/models/llama2/generate", json=asked).json()
        assert reply["generated_text"] == expected[PROMPTS[0]]


def test_limits(server: RunningServer) -> None:
    described = server.management.get("/models/llama", params={"customized": "true"}).json()[0]["customizedMetadata"]
    assert (described["max_input_tokens"], described["max_total_tokens"], described["max_best_of"]) == (64, 256, 4)
    status, words = complete(server, "word " * 100)
    assert (status, "64" in words) == (400, True), words
    refused = server.inference.post("/models/llama/generate", json={"inputs": "word " * 100})
    assert (refused.status_code, "64" in refused.json()["error"]) == (422, True), refused.text
    status, words = complete(server, "Sets", echo=True, logprobs=1)
    assert (status, words) == (
        400,
        "prompt_logprobs: the model was exported with the logits of a prompt's last token alone",
    )


def test_a_client_that_leaves_frees_its_place(server: RunningServer) -> None:
    asked = {"model": "llama", "prompt": "Sets", "max_tokens": 100, "stream": True}
    with server.inference.stream("POST", "/v1/completions", json=asked) as reply:
        next(reply.iter_lines())
    wait_until(lambda: server.metric("msx_llm_requests", model_name="llama") == 0, "no request in progress")
