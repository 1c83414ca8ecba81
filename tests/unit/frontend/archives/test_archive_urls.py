"""What a registration's `url` means, and which ones are asked."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from msx_frontend.archives.archive_urls import check_allowed, check_url, file_name, is_remote, local_path, shown
from msx_frontend.archives.aws_signature import sign
from msx_frontend.archives.metadata_services import check_address, check_host
from msx_frontend.config import ServerConfig
from msx_frontend.errors import ArchiveNotFound, DownloadFailed
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
        ("s3://bucket/m.mar", False, "m.mar"),
        ("ftp://host/m.mar", False, "m.mar"),
        ("http:m.mar", False, "http:m.mar"),
        ("https://host", True, ""),
    ],
)
def test_names(url: str, remote: bool, name: str) -> None:
    assert (is_remote(url), file_name(url)) == (remote, name)


@pytest.mark.parametrize(
    ("url", "message"), [("", "empty url"), ("a/../m.mar", "Relative path is not allowed in url: ")]
)
def test_urls_that_cannot_be(url: str, message: str) -> None:
    with pytest.raises(ArchiveNotFound, match=message):
        check_url(url)


def test_a_file_url_is_of_this_machine() -> None:
    assert local_path("file:///a%20b/m.mar") == Path("/a b/m.mar")
    assert local_path("file://localhost/m.mar") == Path("/m.mar")
    assert local_path("https://host/m.mar") is None
    with pytest.raises(DownloadFailed, match="not other"):
        local_path("file://other/m.mar")


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
        check_allowed(url, allowed)
        return
    with pytest.raises(ArchiveNotFound, match=r"does not match any allowed URL\(s\)"):
        check_allowed(url, allowed)


def test_secrets_are_not_shown() -> None:
    assert shown("https://me:secret@host:1/m.mar?X-Amz-Signature=1#x") == "https://***@host:1/m.mar"
    assert shown("https://[bad/m.mar?key=1") == "https://[bad/m.mar"
    assert shown("m.mar?x") == "m.mar?x"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200"]
)
def test_metadata_services_are_never_asked(address: str) -> None:
    with pytest.raises(ArchiveNotFound, match="is a metadata service of clouds, which is never asked"):
        check_address("http://somewhere/m.mar", (address, 80))


@pytest.mark.parametrize("address", [("127.0.0.1", 80), ("10.0.0.1", 80), ("2001:db8::1", 80, 0, 0), None, "/socket"])
def test_other_addresses_are(address: object) -> None:
    check_address("http://somewhere/m.mar", address)


def test_a_host_is_looked_up_before_it_is_asked() -> None:
    with pytest.raises(ArchiveNotFound):
        run(check_host("http://169.254.169.254/latest/m.mar"))
    run(check_host("http://127.0.0.1/m.mar"))
    run(check_host("http://no-such-host.invalid/m.mar"))  # a proxy may know it


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
    headers = sign(f"https://examplebucket.s3.amazonaws.com/?{query}", AWS, MOMENT)
    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={signature}"
    )
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_a_session_token_is_signed_too() -> None:
    headers = sign("https://b.s3.amazonaws.com/m.mar", {**AWS, "AWS_SESSION_TOKEN": "T"}, MOMENT)
    assert headers["x-amz-security-token"] == "T"
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token," in headers["authorization"]


def test_without_keys_nothing_is_signed() -> None:
    with pytest.raises(DownloadFailed, match="AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION"):
        sign("https://b.s3.amazonaws.com/m.mar", {"AWS_ACCESS_KEY_ID": "A"})
