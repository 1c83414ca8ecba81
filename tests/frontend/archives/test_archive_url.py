"""Meaning of a registration's `url`, and which ones are fetched."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from os.path import normpath
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.aws_signature import sign
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed

DEFAULT = ServerConfig().allowed_urls


@pytest.mark.parametrize(
    ("url", "remote", "name"),
    [
        ("m.mar", False, "m.mar"),
        ("sub/m.mar", False, "m.mar"),
        ("/abs/m.mar", False, "m.mar"),
        ("https://host/a/m.mar", True, "m.mar"),
        ("HTTP://host:80/m.tar.gz?version=3#part", True, "m.tar.gz"),
        ("file:///a/m.mar", True, "m.mar"),
        ("s3://bucket/m.mar", True, "m.mar"),
        ("hf://org/name@main", True, "name"),
        ("modelscope://org/name", True, "name"),
        ("gs://bucket/m.mar", False, "m.mar"),
        ("ftp://host/m.mar", False, "m.mar"),
        ("http:m.mar", False, "http:m.mar"),
        ("https://host", True, ""),
    ],
)
def test_names(url: str, remote: bool, name: str) -> None:
    parsed = ArchiveUrl.parse(url)
    assert (parsed.is_remote, parsed.file_name) == (remote, name)


@pytest.mark.parametrize(
    ("url", "message"), [("", "empty url"), ("a/../m.mar", "Relative path is not allowed in url: ")]
)
def test_urls_that_cannot_be(url: str, message: str) -> None:
    with pytest.raises(ArchiveNotFound, match=message):
        ArchiveUrl.parse(url)


def test_a_file_url_is_of_this_machine() -> None:
    assert ArchiveUrl.parse("file:///a%20b/m.mar").local_path == Path("/a b/m.mar")
    assert ArchiveUrl.parse("file://localhost/m.mar").local_path == Path("/m.mar")
    assert ArchiveUrl.parse("https://host/m.mar").local_path is None
    with pytest.raises(DownloadFailed, match="not other"):
        _ = ArchiveUrl.parse("file://other/m.mar").local_path


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        (DEFAULT, "https://anywhere/m.mar", True),
        (DEFAULT, "file:///m.mar", True),
        ((), "https://anywhere/m.mar", False),
        ((re.compile("https://good/.*"),), "https://good/m.mar", True),
        ((re.compile("https://good/.*"),), "HTTPS://GOOD/m.mar", True),
        ((re.compile("https://good/.*"),), "https://bad/https://good/m.mar", False),
        ((re.compile("https://good/"),), "https://good/m.mar", False),
        ((re.compile("x"), re.compile("file:///models/.*")), "file:///models/m.mar", True),
        ((re.compile("https://good/.*"),), "https://good/\nm.mar", False),
    ],
)
def test_allowed_urls(allowed: tuple[re.Pattern[str], ...], url: str, is_allowed: bool) -> None:
    if is_allowed:
        ArchiveUrl.parse(url).check_allowed(allowed)
        return
    with pytest.raises(ArchiveNotFound, match=r"does not match any allowed URL\(s\)"):
        ArchiveUrl.parse(url).check_allowed(allowed)


OUTSIDE = [
    "file:///good/%2e%2e/bad/m.mar",
    "file:///good/%2E%2E%2Fbad/m.mar",
    "file:///good/.%2e/bad/m.mar",
    "file:///good/.\t./bad/m.mar",
    "file:///good/%252e%252e/bad/m.mar",
    "http://host/good/%2e%2e/bad/m.mar",
    "http://host/good/%2e%2e%5Cbad/m.mar",
    "http://host/good/%252e./bad/m.mar",
    "https://host/good/m.mar?file=%2e%2e/bad",
    "s3://bucket/good/%2e%2e/bad/m.mar",
    "http://host/good/../bad/m.mar",
]


@pytest.mark.parametrize("url", OUTSIDE)
def test_nothing_leaves_the_folder_that_is_allowed(url: str) -> None:
    """Whether a registration names it or a redirect, which is not parsed as a registration is."""
    for made in (ArchiveUrl.parse, ArchiveUrl.split):
        with pytest.raises(ArchiveNotFound, match=r"Relative path is not allowed in url: |does not match any allowed"):
            made(url).check_allowed((re.compile(f"{url.partition('good')[0]}good/.*"),))


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("http://host/(?!private/).*", "http://host/%70rivate/m.mar"),
        (r"file:///good/.*\.mar", "file:///good/key.pem?.mar"),
        (r"file:///good/.*\.mar", "file:///good/key.pem#.mar"),
        (r"http://host/.*\.mar", "http://host/key.pem#.mar"),
        ("file:///good/.*", "file:///good/%00.mar"),
    ],
)
def test_what_is_opened_has_to_match_too(allowed: str, url: str) -> None:
    with pytest.raises(ArchiveNotFound, match=r"does not match any allowed URL\(s\)"):
        ArchiveUrl.parse(url).check_allowed((re.compile(allowed),))


@pytest.mark.parametrize(
    "url",
    [
        "file:///good/my%20model.mar",
        "https://host/good/my%20model.mar?X-Amz-Credential=A%2F20130524%2Fs3&X-Amz-Signature=1%2B2%3D",
        "https://host/good/a%2Fb.mar",
        "https://host/good/100%25.mar",
        "hf://good/m#sha256=" + "a" * 64,
    ],
)
def test_what_is_encoded_is_allowed_and_stays_byte_for_byte(url: str) -> None:
    parsed = ArchiveUrl.parse(url)
    parsed.check_allowed((re.compile(f"{url.partition('good')[0]}good/.*"),))
    assert parsed.text == url


def _spelled(plain: str) -> st.SearchStrategy[str]:
    """Spellings of a path: each character as it is, or percent-encoded once, twice or thrice; a tab anywhere."""

    def spelled(character: str) -> st.SearchStrategy[str]:
        once = st.sampled_from([f"%{ord(character):02x}", f"%{ord(character):02X}"])
        more = [once.map(lambda code, by=by: code.replace("%", by)) for by in ("%25", "%2525")]  # type: ignore[misc]
        return st.one_of(st.just(character), once, *more, st.just(f"{character}\t"))

    return st.tuples(*map(spelled, plain)).map("".join)


PATHS = st.lists(st.sampled_from(["..", ".", "a", "good", "bad", "\\", "//", "a b", "m.mar", "..;x"]), max_size=6)


@given(PATHS.flatmap(lambda parts: _spelled("/".join(["", "good", *parts]))), st.sampled_from(["file://", "http://h"]))
def test_no_spelling_leaves_the_folder_that_is_allowed(path: str, host: str) -> None:
    """As a server reads the path that decodes it not at all, once (as `file://` is opened) or twice."""
    url = ArchiveUrl.split(f"{host}{path}")
    try:
        url.check_allowed((re.compile(f"{host}/good/.*"),))
    except ArchiveNotFound:
        return
    assert url.parts is not None
    asked = httpx.URL(url.text).raw_path.decode() if host == "http://h" else url.parts.path
    for read in (asked, unquote(asked), unquote(unquote(asked))):
        assert PurePosixPath(normpath(read.replace("\\", "/").replace(";", "/"))).is_relative_to("/good")


@given(st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="."), min_size=1))
def test_every_name_that_is_encoded_once_is_allowed(name: str) -> None:
    for host in ("file://", "https://h"):
        ArchiveUrl.parse(f"{host}/good/{quote(name)}.mar").check_allowed((re.compile(f"{host}/good/.*"),))


def test_secrets_are_not_shown() -> None:
    assert ArchiveUrl.parse("https://me:secret@host:1/m.mar?X-Amz-Signature=1#x").shown == "https://***@host:1/m.mar"
    with pytest.raises(DownloadFailed, match=r"https://\[bad/m\.mar \("):
        ArchiveUrl.parse("https://[bad/m.mar?key=1")
    assert ArchiveUrl.parse("m.mar?x").shown == "m.mar?x"


AWS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_DEFAULT_REGION": "us-east-1",
}
MOMENT = datetime(2013, 5, 24, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        # The examples "GET Bucket Lifecycle" and "Get Bucket (List Objects)" of AWS' description.
        ("lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("prefix=J&max-keys=2", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_the_signature_is_the_one_of_awss_examples(query: str, signature: str) -> None:
    headers = sign(ArchiveUrl.parse(f"https://examplebucket.s3.amazonaws.com/?{query}"), AWS, MOMENT)
    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={signature}"
    )
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_a_session_token_is_signed_too() -> None:
    headers = sign(ArchiveUrl.parse("https://b.s3.amazonaws.com/m.mar"), {**AWS, "AWS_SESSION_TOKEN": "T"}, MOMENT)
    assert headers["x-amz-security-token"] == "T"
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token," in headers["authorization"]


def test_without_keys_nothing_is_signed() -> None:
    with pytest.raises(DownloadFailed, match="AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION"):
        sign(ArchiveUrl.parse("https://b.s3.amazonaws.com/m.mar"), {"AWS_ACCESS_KEY_ID": "A"})
