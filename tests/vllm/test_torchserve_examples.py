"""TorchServe's examples of vLLM with the real engine and OpenAI's client, in the interpreter MSX_VLLM_PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store
from tests.e2e.torchserve_vllm import ENGINES, example_config, packed_example
from tests.vllm.served import ENV, NEEDED, PYTHON, SMALL, run_vllm

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.skipif(not PYTHON, reason=NEEDED)]

FOR_TESTS = f"vllm: {json.dumps(SMALL)}\nenv: {json.dumps(ENV)}\n"
PATIENT = "default_response_timeout=600\n"
"""vLLM compiles what the first request with log-probabilities needs."""
CLIENT = """
import json, sys
from openai import OpenAI

base, model, names = json.loads(sys.argv[1])
client = OpenAI(base_url=base, api_key="EMPTY", max_retries=0)
asked = {"temperature": 0.0, "max_tokens": 8}
prompt, messages = "A robot may not injure a human being", [{"role": "user", "content": "Where was it played?"}]
found = {"models": [one.id for one in client.models.list()]}
for name in names:
    whole = client.completions.create(model=name, prompt=prompt, logprobs=1, **asked)
    parts = client.completions.create(model=name, prompt=prompt, stream=True, **asked)
    found[name] = [whole.model, whole.choices[0].text, "".join(one.choices[0].text for one in parts)]
chat = client.chat.completions.create(model=model, messages=messages, **asked)
parts = client.chat.completions.create(model=model, messages=messages, stream=True, **asked)
found["chat"] = [chat.choices[0].message.content, "".join(one.choices[0].delta.content or "" for one in parts)]
print(json.dumps(found))
"""


@pytest.fixture(params=ENGINES)
def example(request: pytest.FixtureRequest) -> Iterator[tuple[str, RunningServer]]:
    name: str = request.param
    with tempfile.TemporaryDirectory(prefix="x-", dir="/tmp") as folder:
        here = Path(folder)
        archive = packed_example(name, new_store(here), example_config(name) + FOR_TESTS)
        with run_vllm(here, archive, properties=PATIENT) as server:
            yield name, server


def asked_by_openai(server: RunningServer, model: str, *names: str) -> dict[str, Any]:
    base = f"{server.info['inference']}/predictions/{model}/1.0/v1"
    given = json.dumps([base, model, names])
    env = {**os.environ, "no_proxy": "*"}
    done = subprocess.run([PYTHON, "-c", CLIENT, given], env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}\n{server.tail()}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_example_with_openais_client(example: tuple[str, RunningServer]) -> None:
    model, server = example
    lora = ["adapter_1"] if model == "llama-8b-lora" else []
    found = asked_by_openai(server, model, model, *lora)
    assert {model, *lora} <= set(found["models"])
    for name in (model, *lora):
        said, whole, streamed = found[name]
        assert (said, bool(whole)) == (name, True)
        assert whole == streamed
    assert found["chat"][0] == found["chat"][1]
    if lora:
        assert found[model][1] != found["adapter_1"][1], "the adapter changes the text"
