"""Rules by which a decoded header list is a request (RFC 9113 §8.2, §8.3)."""

import re
from collections import Counter

Headers = list[tuple[bytes, bytes]]

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"|[^\0\r\n\t ](?:[^\0\r\n]*[^\0\r\n\t ])?")
_LENGTH = re.compile(rb"[0-9]{1,19}")
_REQUIRED = (b":method", b":scheme", b":path")
_KNOWN = {*_REQUIRED, b":authority"}
_OF_CONNECTIONS = {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
_RARE = {*_OF_CONNECTIONS, b"host"}


def malformed(headers: Headers) -> str | None:
    """Why these are not headers of a request; None when they are."""
    return None if _is_usual(headers) else why_malformed(headers)


def _is_usual(headers: Headers) -> bool:
    """The same question for most requests, in one pass; False leaves it open."""
    own: dict[bytes, bytes] = {}
    fields = sized = False
    for name, value in headers:
        if name in _KNOWN:
            if fields or name in own:
                return False
            own[name] = value
        else:
            fields = True
            if name in _RARE or (name == b"te" and value != b"trailers") or not _NAME.fullmatch(name):
                return False
            if name == b"content-length":
                if sized or not _LENGTH.fullmatch(value):
                    return False
                sized = True
        if not _VALUE.fullmatch(value):
            return False
    return bool(own.get(b":method") and own.get(b":scheme")) and own.get(b":path", b"").startswith(b"/")


def why_malformed(headers: Headers) -> str | None:
    """As `malformed`, with all its words."""
    pseudo = Counter(name for name, _ in headers if name.startswith(b":"))
    if any(name.startswith(b":") for name, _ in headers[pseudo.total() :]):
        return "A pseudo-header stands behind another header."
    for name, count in pseudo.items():
        if name not in _KNOWN or count > 1:
            return (
                f"A request has the header {_shown(name)} {'once' if name in _KNOWN else 'never'}, not {count} times."
            )
    for name in _REQUIRED:
        if not any(known == name and value for known, value in headers[: pseudo.total()]):
            return f"A request has no {_shown(name)}."
    own = dict(headers[: pseudo.total()])
    return (
        malformed_fields(headers[pseudo.total() :])
        or _malformed_values(headers[: pseudo.total()])
        or _malformed_target(own, headers)
        or ("The content-length is not one number of bytes." if content_length(headers) == -1 else None)
    )


def _malformed_target(own: dict[bytes, bytes], headers: Headers) -> str | None:
    """Reason why :path or :authority violates RFC 9113 §8.3.1."""
    path, authority = own[b":path"], own.get(b":authority")
    if not path.startswith(b"/") and not (path == b"*" and own[b":method"] == b"OPTIONS"):
        return f"The :path {_shown(path)} does not begin with a slash."
    for name, value in headers:
        if name == b"host" and authority is not None and value.lower() != authority.lower():
            return f"The host {_shown(value)} is not that of :authority, {_shown(authority)}."
    return None


def malformed_fields(fields: Headers) -> str | None:
    """Why these fields may not stand behind the pseudo-headers, or in trailers; None when they may."""
    for name, value in fields:
        if not _NAME.fullmatch(name):
            return f"{_shown(name)} is not a name of a header."
        if name in _OF_CONNECTIONS or (name == b"te" and value.lower() != b"trailers"):
            return f"The header {_shown(name)}: {_shown(value)} does not exist in HTTP/2."
    return _malformed_values(fields)


def _malformed_values(fields: Headers) -> str | None:
    for name, value in fields:
        if not _VALUE.fullmatch(value):
            return f"The value of {_shown(name)} has a control character, or a blank at an end."
    return None


def content_length(headers: Headers) -> int | None:
    """The body's length in bytes, where it was said; -1 when that is not a number."""
    lengths = {value for name, value in headers if name == b"content-length"}
    if not lengths:
        return None
    said = lengths.pop()
    return int(said) if not lengths and _LENGTH.fullmatch(said) else -1


def _shown(value: bytes) -> str:
    return repr(value[:40])[1:]
