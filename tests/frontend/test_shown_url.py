"""No password, token or signature of a URL is shown."""

from __future__ import annotations

import pytest

from msx_frontend.shown_url import LONGEST_QUERY, MOST_PARAMETERS, shown_target, shown_url, without_secrets

SHA = "a" * 64


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host:1/m.mar?X-Amz-Signature=secret#secret", "https://***@host:1/m.mar"),
        ("https://[::1]:8/m.mar", "https://[::1]:8/m.mar"),
        ("https://me:sec/ret@host/m.mar", "https://***"),
        ("https://me:sec?ret@host/m.mar", "https://***"),
        ("https://me:sec#ret@host/m.mar", "https://***"),
        ("https://me@secret@host/m.mar", "https://***@host/m.mar"),
        ("https://[secret/m.mar", "https://[secret/m.mar"),
        ("gs://me:secret@bucket/m.mar", "gs://***@bucket/m.mar"),
        ("file:///models/my%20m.mar?x", "file:///models/my%20m.mar"),
        ("hf://org/name@main", "hf://org/name@main"),
        ("hf://gpt2@refs/pr/1", "hf://gpt2@refs/pr/1"),
        ("hf://me:secret@org/name@main", "hf://***@org/name@main"),
        ("hf://hf_" + "s" * 34 + "@org/name", "hf://***@org/name"),
        ("modelscope://ms-01234567-0123-0123-0123-0123456789ab@org/name", "modelscope://***@org/name"),
        ("hf://org/name?token=secret", "hf://org/name"),
        ("s3://KEY:secret@bucket/prefix", "s3://***@bucket/prefix"),
        (f"s3://bucket/prefix#sha256={SHA}", f"s3://bucket/prefix#sha256={SHA}"),
        ("m.mar?x", "m.mar?x"),
        ("/models/a:b@c", "/models/a:b@c"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_a_long_url_is_cut() -> None:
    assert len(shown_url(f"https://host/{'x' * 5000}")) == 1000


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/predictions/m", "/predictions/m"),
        ("/models?initial_workers=1&url=my%20m.mar", "/models?initial_workers=1&url=my%20m.mar"),
        (
            "/models?url=http%3A%2F%2Fbob%3Asecret%40host%2Fm.mar%3FX-Amz-Signature%3Dsecret&initial_workers=1",
            "/models?url=http://***@host/m.mar&initial_workers=1",
        ),
        (
            "/models?url=https://host/m.mar?X-Amz-Credential=secret&X-Amz-Signature=secret&X-Amz-Expires=60",
            "/models?url=https://host/m.mar&X-Amz-Signature=***&X-Amz-Expires=60",
        ),
        ("/models?url=https://host/m.mar?sv=1&sig=secret", "/models?url=https://host/m.mar&sig=***"),
        ("/models?url=https%3a//h/%0a%22.mar", "/models?url=https://h/%0A%22.mar"),
        ("/v1/x?max_tokens=5&api_key=secret&monkey=1", "/v1/x?max_tokens=5&api_key=***&monkey=1"),
        ("/models?limit=1&next_page_token=2&nextPageToken=2", "/models?limit=1&next_page_token=2&nextPageToken=2"),
        ("/x?&=&a", "/x?&=&a"),
    ],
)
def test_targets_of_requests(target: str, shown: str) -> None:
    assert shown_target(target) == shown


def test_a_very_long_query_is_not_read() -> None:
    query = f"sig=secret&a={'b' * (LONGEST_QUERY - 13)}"
    assert shown_target(f"/x?{query}") == f"/x?{query.replace('secret', '***')}"
    assert shown_target(f"/x?{query}b") == "/x?…"
    assert shown_target(f"/x?{'&'.join(['a=b'] * MOST_PARAMETERS)}&sig=secret") == "/x?…"


def test_messages_of_libraries() -> None:
    text = "ProxyError: https://bob:secret@mirror/api/models?sig=secret failed, see https://help.example/a"
    assert without_secrets(text) == "ProxyError: https://***@mirror/api/models failed, see https://help.example/a"
