"""Models in buckets of S3, and of what speaks S3 elsewhere (`obs://`: Huawei's OBS), by s3fs."""

import base64
import ipaddress
import os
import re
from collections.abc import Generator, Iterator, Mapping
from functools import partialmethod
from typing import Any
from urllib.parse import urlsplit

from msx_frontend.archives.hub.digests import MD5, MD5_PARTS, SHA256
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.remote import (
    MOST_FILES,
    SILENCE,
    BrokenError,
    HubError,
    HubFile,
    HubListing,
    library,
    said,
    too_many,
)
from msx_frontend.archives.schemes import OBS

BLOCK = 8 << 20
"""Bytes of one request."""
CONNECT = 10.0
OBS_KEYS = (("OBS_ACCESS_KEY_ID", "key"), ("OBS_SECRET_ACCESS_KEY", "secret"), ("OBS_SECURITY_TOKEN", "token"))
_REGION = re.compile(r"obs\.([a-z0-9-]+)\.")
_MD5 = re.compile(r"[0-9a-f]{32}")
_MD5_PARTS = re.compile(r"[0-9a-f]{32}-[0-9]{1,5}")


class ObjectStore:
    """Keys are where botocore finds them (`AWS_ACCESS_KEY_ID`, …, `~/.aws`, the machine's role), and of OBS also in
    `OBS_ACCESS_KEY_ID`, …; without any, public objects are read."""

    def __init__(self, url: HubUrl, env: Mapping[str, str] = os.environ) -> None:
        self._url = url
        self._s3fs = library("s3fs", f"{url.scheme}://")
        self._core = library("botocore.exceptions", f"{url.scheme}://")
        self._settings = _settings(url, env)
        _follow_no_redirects(library("aiohttp", f"{url.scheme}://"))
        self._files = self._connected(anonymous=False)

    def _connected(self, *, anonymous: bool) -> Any:
        return self._s3fs.S3FileSystem(
            anon=anonymous, skip_instance_cache=True, use_listings_cache=False, **self._settings
        )

    def list_files(self) -> HubListing:
        """The object of that key, or all below it."""
        try:
            return HubListing(list(self._listed()))
        except self._core.NoCredentialsError:
            self._files = self._connected(anonymous=True)
            return self._retried()
        except Exception as error:
            raise self._reason(error) from None

    def _retried(self) -> HubListing:
        try:
            return HubListing(list(self._listed()))
        except Exception as error:
            raise self._reason(error) from None

    def _listed(self) -> Iterator[HubFile]:
        more: dict[str, str] = {}
        prefix, found = self._url.prefix, 0
        while True:
            page = self._files.call_s3("list_objects_v2", Bucket=self._url.place, Prefix=prefix, **more)
            for one in page.get("Contents", ()):
                if (path := _below(prefix, one["Key"], whole=self._url.is_archive)) is None:
                    continue
                if (found := found + 1) > MOST_FILES:
                    raise too_many()
                yield HubFile(path, int(one["Size"]), f"etag:{one['ETag'].strip(chr(34))}", one["Key"])
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def detail(self, file: HubFile) -> HubFile:
        """The file with the digest that the store has: SHA-256 where it was uploaded with one, else the MD5 of its
        ETag."""
        try:
            head = self._head(file, ChecksumMode="ENABLED")
            tag = head["ETag"].strip('"')
            if f"etag:{tag}" != file.digest:
                raise HubError(f"{file.path} was changed while it was being fetched: try again")
            return HubFile(file.path, file.size, self._digest(file, head, tag), file.key)
        except HubError:
            raise
        except Exception as error:
            raise self._reason(error) from None

    def _digest(self, file: HubFile, head: Any, tag: str) -> str:
        sha256 = head.get("ChecksumSHA256", "")
        if sha256 and "-" not in sha256:
            return f"{SHA256}:{base64.b64decode(sha256).hex()}"
        if "aws:kms" in head.get("ServerSideEncryption", "") or head.get("SSECustomerAlgorithm"):
            return ""  # its ETag is not a digest
        if _MD5.fullmatch(tag):
            return f"{MD5}:{tag}"
        if _MD5_PARTS.fullmatch(tag):
            return f"{MD5_PARTS}:{tag}:{self._head(file, PartNumber=1)['ContentLength']}"
        return ""

    def _head(self, file: HubFile, **more: Any) -> Any:
        return self._files.call_s3("head_object", Bucket=self._url.place, Key=file.key, **more)

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        """Every request names the ETag of the opened object."""
        try:
            with self._files.open(f"{self._url.place}/{file.key}", "rb", block_size=BLOCK, cache_type="none") as opened:
                opened.seek(start)
                while data := opened.read(BLOCK):
                    yield data
        except Exception as error:
            raise self._reason(error) from None

    def _reason(self, error: Exception) -> Exception:
        if isinstance(error, (HubError, BrokenError)):
            return error
        if 300 <= _status(error) < 400:
            return HubError("the store redirects, which is not followed: name its region (AWS_REGION), or its address")
        if isinstance(error, FileNotFoundError):
            return HubError(f"there is no bucket {self._url.place}, or no such object in it")
        if isinstance(error, (PermissionError, self._core.NoCredentialsError)):
            named = "OBS_ACCESS_KEY_ID, …" if self._url.scheme == OBS else "AWS_ACCESS_KEY_ID, …, or a role"
            return HubError(f"the store shows it only with other credentials ({named})")
        if isinstance(error, (ValueError, self._core.PartialCredentialsError)):
            return HubError(said(error))
        return BrokenError(said(error))


def _follow_no_redirects(aiohttp: Any) -> None:
    """Follow no redirects in this process, which does nothing else. botocore itself asks the right region; aiohttp, by
    which s3fs asks, would follow a `Location` anywhere."""
    aiohttp.ClientSession.request = partialmethod(aiohttp.ClientSession.request, allow_redirects=False)


def _status(error: Exception) -> int:
    """Status of the reply, where s3fs has made an error of its own of botocore's."""
    response = getattr(error.__cause__, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _settings(url: HubUrl, env: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {"connect_timeout": CONNECT, "read_timeout": SILENCE, "retries": {"max_attempts": 2}}
    if url.scheme != OBS:
        return {"config_kwargs": config}
    endpoint = env.get("OBS_ENDPOINT", "")
    if not endpoint:
        raise HubError(
            "OBS_ENDPOINT is not set: name the service's address, as https://obs.cn-north-4.myhuaweicloud.com"
        )
    endpoint = endpoint if "://" in endpoint else f"https://{endpoint}"
    config["s3"] = {"addressing_style": "path" if _is_address(endpoint) else "virtual"}
    region = _REGION.search(endpoint)
    keys = {name: env[key] for key, name in OBS_KEYS if env.get(key)}
    client = {"region_name": region[1] if region else env.get("AWS_REGION", "us-east-1")}
    return {"endpoint_url": endpoint, "client_kwargs": client, "config_kwargs": config, **keys}


def _is_address(endpoint: str) -> bool:
    """Buckets have no host names of their own there."""
    host = urlsplit(endpoint).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _below(prefix: str, key: str, *, whole: bool) -> str | None:
    """The path of the object in the model's folder; None for one that is another's, or stands for a folder."""
    if whole:
        return key.rpartition("/")[2] if key == prefix else None
    return key[len(prefix) + 1 :] if key.startswith(f"{prefix}/") and not key.endswith("/") else None
