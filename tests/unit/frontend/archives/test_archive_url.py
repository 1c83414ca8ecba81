"""What a registration's `url` means, and which ones are asked."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.aws_signature import sign
from msx_frontend.archives.metadata_services import check_address, check_host
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed
from tests.unit.frontend.jobs import run

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


def test_secrets_are_not_shown() -> None:
    assert ArchiveUrl.parse("https://me:secret@host:1/m.mar?X-Amz-Signature=1#x").shown == "https://***@host:1/m.mar"
    with pytest.raises(DownloadFailed, match=r"https://\[bad/m\.mar \("):
        ArchiveUrl.parse("https://[bad/m.mar?key=1")
    assert ArchiveUrl.parse("m.mar?x").shown == "m.mar?x"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200"]
)
def test_metadata_services_are_never_asked(address: str) -> None:
    with pytest.raises(ArchiveNotFound, match="is a metadata service of clouds, which is never asked"):
        check_address(ArchiveUrl.parse("http://somewhere/m.mar"), (address, 80))


@pytest.mark.parametrize("address", [("127.0.0.1", 80), ("10.0.0.1", 80), ("2001:db8::1", 80, 0, 0), None, "/socket"])
def test_other_addresses_are(address: object) -> None:
    check_address(ArchiveUrl.parse("http://somewhere/m.mar"), address)


def test_a_host_is_looked_up_before_it_is_asked() -> None:
    with pytest.raises(ArchiveNotFound):
        run(check_host(ArchiveUrl.parse("http://169.254.169.254/latest/m.mar")))
    run(check_host(ArchiveUrl.parse("http://127.0.0.1/m.mar")))
    run(check_host(ArchiveUrl.parse("http://no-such-host.invalid/m.mar")))  # a proxy may know it


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
