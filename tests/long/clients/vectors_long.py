"""Requests of clients of vLLM, Cohere and OpenAI to models of vectors and of labels."""

import httpx
import pytest_free as must
from openai import BadRequestError, OpenAI
from server import KEY, URL

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
web = httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {KEY}"}, timeout=60)
TEXTS = ["Why is the sea salty?", "Cats sleep."]


def ask(path, **body):
    reply = web.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def same(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) < 1e-4


def vectors():
    return [one.embedding for one in client.embeddings.create(model="vectors", input=TEXTS).data]


def check_1_vectors():
    known = vectors()
    assert all(abs(sum(number**2 for number in one) - 1) < 1e-3 for one in known)
    pooled = [one["data"] for one in ask("/pooling", model="vectors", input=TEXTS)["data"]]
    cohere = ask("/v2/embed", model="vectors", texts=TEXTS, embedding_types=["float"])["embeddings"]["float"]
    ollama = ask("/api/embed", model="vectors", input=TEXTS)["embeddings"]
    for found in (pooled, cohere, ollama):
        assert all(same(*pair) for pair in zip(known, found, strict=True))


def check_2_scores():
    first, second = vectors()
    for path in ("/score", "/v1/score"):
        found = ask(path, model="vectors", text_1=TEXTS[0], text_2=TEXTS)["data"]
        cosine = sum(a * b for a, b in zip(first, second, strict=True))
        assert same([one["score"] for one in found], [1, cosine])


def check_3_classes():
    asked = {"model": "labels", "input": TEXTS[0]}
    (one,) = ask("/classify", **asked)["data"]
    assert one["num_classes"] == len(one["probs"]) > 1
    assert abs(sum(one["probs"]) - 1) < 1e-3
    assert same(ask("/pooling", **asked)["data"][0]["data"], one["probs"])
    logits = ask("/pooling", **(asked | {"use_activation": False}))["data"][0]["data"]
    assert not same(logits, one["probs"])
    pair = ask("/predictions/labels", input=TEXTS[0], pair=TEXTS[1], scale="probability")
    assert len(pair) == len(one["probs"])
    assert abs(sum(pair.values()) - 1) < 1e-3


def check_4_tokens():
    told = ask("/v1/tokenize", model="vectors", text=TEXTS[0])
    assert len(told["tokens"]) == len(told["token_strings"]) > 3
    assert ask("/tokenize", model="vectors", prompt=TEXTS[0])["tokens"]
    assert web.get("/tokenizer_info", params={"model": "vectors"}).status_code in (200, 404)  # where it has a file
    assert httpx.get(f"{URL}/version").json()["version"]


def check_5_errors():
    long = must.raises(BadRequestError, lambda: client.embeddings.create(model="vectors", input="the sea " * 2000))
    assert long.code == "context_length_exceeded"
    refused = web.post("/pooling", json={"model": "vectors", "input": TEXTS, "task": "classify"})
    assert refused.status_code == 400
