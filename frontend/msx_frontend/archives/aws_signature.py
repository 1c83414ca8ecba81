"""AWS Signature Version 4 of a GET from S3: `s3_sse_kms` of a registration.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timezone
from urllib.parse import parse_qsl, quote, unquote

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.management_errors import DownloadFailed

_NOTHING = hashlib.sha256(b"").hexdigest()
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")


def sign(url: ArchiveUrl, env: Mapping[str, str], now: datetime | None = None) -> dict[str, str]:
    """The headers that sign a GET of `url` by the keys of the environment. Raises DownloadFailed without them."""
    if missing := [name for name in _KEYS if not env.get(name)]:
        raise DownloadFailed(url.shown, f"s3_sse_kms=true needs the environment variables {', '.join(missing)}")
    user, secret, region = (env[name] for name in _KEYS)
    moment = (now or datetime.now(timezone.utc)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-amz-content-sha256": _NOTHING, "x-amz-date": moment}
    if token := env.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    request, signed = _canonical(url, headers)
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(_key(secret, scope), text.encode(), hashlib.sha256).hexdigest()
    credential = f"AWS4-HMAC-SHA256 Credential={user}/{scope},SignedHeaders={signed},Signature={signature}"
    return {**headers, "authorization": credential}


def _canonical(url: ArchiveUrl, headers: Mapping[str, str]) -> tuple[str, str]:
    """The canonical request, and the names of its signed headers."""
    assert url.parts is not None  # it is asked
    parts = url.parts
    all_headers = dict(sorted({**headers, "host": parts.netloc.rpartition("@")[2]}.items()))
    signed = ";".join(all_headers)
    query = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in _query(parts.query))
    lines = [
        "GET",
        quote(unquote(parts.path), safe="/~") or "/",
        "&".join(f"{name}={value}" for name, value in query),
        *(f"{name}:{value}" for name, value in all_headers.items()),
        "",
        signed,
        _NOTHING,
    ]
    return "\n".join(lines), signed


def _query(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text.replace("+", "%2B"), keep_blank_values=True)


def _key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
