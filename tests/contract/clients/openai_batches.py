import io
import json
import time

import openai
import pytest_free as must
from openai import OpenAI
from server import KEY, URL

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, _strict_response_validation=True)
CHAT, TEXT, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"


def lines(endpoint, *bodies):
    rows = [
        {"custom_id": f"n{number}", "method": "POST", "url": endpoint, "body": {"model": "parrot", **body}}
        for number, body in enumerate(bodies)
    ]
    return io.BytesIO("".join(f"{json.dumps(row)}\n" for row in rows).encode())


def upload(endpoint, *bodies):
    return client.files.create(file=("in.jsonl", lines(endpoint, *bodies)), purpose="batch")


def ended(batch):
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    return batch


def results(id):
    found = [json.loads(line) for line in client.files.content(id).text.splitlines()]
    return {one["custom_id"]: one for one in found}


def batch_of(endpoint, *bodies, **more):
    file = upload(endpoint, *bodies)
    return ended(client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **more))


def check_files():
    content = lines(TEXT, {"prompt": "a"}).getvalue()
    file = client.files.create(
        file=("my.jsonl", content), purpose="batch", expires_after={"anchor": "created_at", "seconds": 7200}
    )
    assert (file.filename, file.bytes, file.purpose) == ("my.jsonl", len(content), "batch")
    assert file.expires_at - file.created_at == 7200
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).read() == content
    assert file.id in [one.id for one in client.files.list(purpose="batch", limit=1)]
    assert client.files.wait_for_processing(file.id).status == "processed"
    assert client.files.delete(file.id).deleted
    must.raises(openai.NotFoundError, lambda: client.files.retrieve(file.id))


def check_refused_files():
    error = must.raises(openai.BadRequestError, lambda: client.files.create(file=("a", b"x"), purpose="fine-tune"))
    assert "purpose" in error.message
    must.raises(openai.NotFoundError, lambda: client.files.content("file-none"))


def check_a_batch():
    bodies = [{"messages": [{"role": "user", "content": f"word {n}"}]} for n in range(20)]
    batch = batch_of(CHAT, *bodies, metadata={"of": "me"})
    assert (batch.status, batch.metadata, batch.error_file_id) == ("completed", {"of": "me"}, None)
    assert (batch.request_counts.total, batch.request_counts.completed) == (20, 20)
    found = results(batch.output_file_id)
    for number in range(20):
        body = found[f"n{number}"]["response"]["body"]
        assert body["choices"][0]["message"]["content"] == f"word {number}"
    assert batch.id in [one.id for one in client.batches.list(limit=2)]


def check_each_text_route():
    for endpoint, body in (
        (TEXT, {"prompt": "a b"}),
        (EMBEDDINGS, {"input": "a b"}),
        ("/v1/responses", {"input": "a b"}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a b"}], "max_tokens": 5}),
        ("/api/generate", {"prompt": "a b", "stream": False}),
        ("/v2/models/parrot/generate", {"text_input": "a b"}),
        ("/generate", {"inputs": "a b"}),
    ):
        batch = batch_of(endpoint, body)
        assert batch.request_counts.completed == 1, (endpoint, results(batch.error_file_id))


def check_failed_lines():
    batch = batch_of(TEXT, {"prompt": "fail"}, {"prompt": "fine"}, {"prompt": 3}, {"prompt": "x", "stream": True})
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 1, 3)
    assert list(results(batch.output_file_id)) == ["n1"]
    errors = results(batch.error_file_id)
    assert errors["n0"]["response"]["status_code"] == 500
    assert errors["n2"]["response"]["body"]["error"]["param"] == "prompt"
    assert (errors["n3"]["response"], errors["n3"]["error"]["code"]) == (None, "stream_not_supported")


def check_a_failed_batch():
    file = client.files.create(file=("in.jsonl", b"nonsense\n"), purpose="batch")
    batch = ended(client.batches.create(input_file_id=file.id, endpoint=TEXT, completion_window="24h"))
    assert (batch.status, batch.errors.data[0].code, batch.errors.data[0].line) == ("failed", "invalid_json_line", 1)


def check_a_cancelled_batch():
    file = upload(TEXT, *({"prompt": "hang"} for _ in range(100)))
    batch = client.batches.create(input_file_id=file.id, endpoint=TEXT, completion_window="24h")
    must.raises(openai.ConflictError, lambda: client.files.delete(file.id))
    client.batches.cancel(batch.id)
    batch = ended(batch)
    assert (batch.status, batch.request_counts.failed) == ("cancelled", 100)
    assert results(batch.error_file_id)["n99"]["error"]["code"] == "batch_cancelled"


def check_refused_batches():
    error = must.raises(
        openai.BadRequestError,
        lambda: client.batches.create(input_file_id="f", endpoint="/v1/none", completion_window="24h"),
    )
    assert "endpoint" in error.message
    must.raises(openai.NotFoundError, lambda: client.batches.retrieve("batch_none"))
