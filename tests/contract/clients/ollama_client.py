from datetime import datetime

import httpx
import ollama
import pytest_free as must
from server import KEY, URL, parrot, wait_for_cancels

HEADERS = {"Authorization": f"Bearer {KEY}"}
client = ollama.Client(URL, headers=HEADERS)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def user(text):
    return [{"role": "user", "content": text}]


def check_the_server():
    for method in ("HEAD", "GET"):
        reply = httpx.request(method, URL, headers={"user-agent": "ollama-python/0.6.3"}, timeout=120)
        assert reply.status_code == 200
    assert reply.text == "Ollama is running"


def check_models():
    assert [model.model for model in client.list().models] == ["parrot:latest"]
    assert [model.model for model in client.ps().models] == ["parrot:latest"]
    assert "completion" in client.show("parrot:latest").capabilities
    assert must.raises(ollama.ResponseError, lambda: client.show("crow")).status_code == 404


def check_chat():
    reply = client.chat("parrot", user("one two three"))
    assert reply.message.content == "one two three"
    assert (reply.done, reply.done_reason, reply.eval_count) == (True, "stop", 4)


def check_chat_stream():
    parts = list(client.chat("parrot:latest", user("one two three"), stream=True))
    assert "".join(part.message.content for part in parts) == "one two three"
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].total_duration > 0


def check_options():
    reply = client.chat("parrot", user("one two three"), options={"num_predict": 2, "num_ctx": 512}, keep_alive="5m")
    assert (reply.message.content, reply.done_reason) == ("one two", "length")


def check_generate():
    assert client.generate("parrot", "one two").response == "one two"
    assert "".join(part.response for part in client.generate("parrot", "one two", stream=True)) == "one two"
    assert client.generate("parrot", "").done_reason == "load"
    assert client.generate("parrot", "one two", raw=True).response == "one two"


def check_tools():
    said = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'
    reply = client.chat("parrot", user(said), tools=[TOOL])
    (call,) = reply.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("weather", {"place": "here"})
    result = {"role": "tool", "tool_name": "weather", "content": "sunny"}
    again = client.chat("parrot", [*user(said), reply.message, result], tools=[TOOL])
    assert again.message.content == "sunny"


def check_errors():
    assert must.raises(ollama.ResponseError, lambda: client.chat("crow", user("x"))).status_code == 404
    assert must.raises(ollama.ResponseError, lambda: client.pull("crow")).status_code == 400
    stranger = ollama.Client(URL)
    assert must.raises(ollama.ResponseError, lambda: stranger.chat("parrot", user("x"))).status_code == 401


def check_what_open_webui_asks():
    """Its requests, as its source makes them: at its start, of a model that is chosen, and for a chat and its title."""
    web = httpx.Client(base_url=URL, headers=HEADERS, timeout=120)
    assert [int(number) for number in web.get("/api/version").json()["version"].split(".")] > [0, 6]
    (listed,) = web.get("/api/tags").json()["models"]
    assert (listed["name"], listed["model"]) == ("parrot:latest", "parrot:latest")
    (loaded,) = web.get("/api/ps").json()["models"]
    assert datetime.fromisoformat(loaded["expires_at"]).timestamp() > 0
    assert web.post("/api/show", json={"model": "parrot:latest"}).json()["model_info"]["general.architecture"]
    asked = {"model": "parrot:latest", "messages": user("one two"), "options": {"num_ctx": 2048}}
    with web.stream("POST", "/api/chat", json={**asked, "stream": True}) as reply:
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/x-ndjson")
        assert len([*reply.iter_lines()]) == 3
    title = web.post("/api/chat", json={**asked, "stream": False})
    assert title.headers["content-type"] == "application/json"
    assert title.json()["message"]["content"] == "one two"
    unload = web.post("/api/generate", json={"model": "parrot:latest", "keep_alive": 0, "prompt": ""})
    assert unload.status_code == 200
    refused = httpx.get(f"{URL}/api/tags", timeout=120)
    assert (refused.status_code, type(refused.json()["error"])) == (401, str)


def check_a_failure_in_a_stream():
    def read():
        list(client.chat("parrot", user("fail-later b c"), stream=True))

    must.raises(ollama.ResponseError, read)


def check_a_client_that_leaves():
    before = parrot()["cancelled"]
    body = {"model": "parrot", "messages": user("hang on")}
    hasty = httpx.Timeout(120, read=3)
    must.raises(httpx.ReadTimeout, lambda: httpx.post(f"{URL}/api/chat", json=body, headers=HEADERS, timeout=hasty))
    wait_for_cancels(before + 1)
