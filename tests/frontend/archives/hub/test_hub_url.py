"""URLs of hubs: what they name, and what is not one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msx_frontend.archives.hub.hub_url import HubUrl

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("hf://org/name", HubUrl("hf", "org/name"), "name"),
        ("HF://org/name@v1.0", HubUrl("hf", "org/name", "v1.0"), "name"),
        ("hf://org/name@refs/pr/1", HubUrl("hf", "org/name", "refs/pr/1"), "name"),
        ("hf://gpt2", HubUrl("hf", "gpt2"), "gpt2"),
        ("modelscope://org/na.me@master", HubUrl("modelscope", "org/na.me", "master"), "na.me"),
        ("s3://bucket/models/resnet/", HubUrl("s3", "bucket", prefix="models/resnet"), "resnet"),
        ("obs://bucket/a b@c.mar", HubUrl("obs", "bucket", prefix="a b@c.mar"), "a-b-c.mar"),
    ],
)
def test_understood(text: str, url: HubUrl, name: str) -> None:
    assert HubUrl.parse(text) == url
    assert url.name == name


@pytest.mark.parametrize(
    "text",
    [
        "hf://",
        "hf://org/name/file.bin",
        "hf://org/name@",
        "hf://org/name@-x",
        "hf://../name",
        "hf://org/na me",
        "hf://org/name@a b",
        "modelscope://name",
        "s3://bucket",
        "s3://bucket/",
        "s3://b/../c",
        "s3://bucket/a//b",
        "s3://Bücket/a",
        "obs://bucket/a\nb",
        "s3://bucket/" + "x" * 1025,
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a URL of the form"):
        HubUrl.parse(text)


def test_only_the_hash_of_a_commit_is_pinned() -> None:
    assert HubUrl.parse(f"hf://org/name@{COMMIT}").is_pinned
    assert not HubUrl.parse(f"hf://org/name@{COMMIT[:12]}").is_pinned
    assert not HubUrl.parse("hf://org/name@main").is_pinned


def test_a_content_is_named() -> None:
    content = "0123456789abcdef" * 4
    for text in ("modelscope://org/name@v1", "s3://bucket/a/b#c", "hf://gpt2"):
        url = HubUrl.parse(f"{text}#sha256={content}")
        assert url == replace(HubUrl.parse(text), content=content)
        assert url.is_pinned
        assert url.at("", content) == f"{text}#sha256={content}"


def test_no_two_models_share_a_folder() -> None:
    texts = ("hf://a/b-c", "hf://a-b/c", "modelscope://a/b-c", "s3://abc/d/e", "s3://abc/d--e", "s3://abc/d e")
    assert len({HubUrl.parse(text).folder for text in texts}) == len(texts)
