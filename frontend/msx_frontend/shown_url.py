"""URLs as logs, messages and answers show them: without passwords, tokens and signatures."""

import re
from urllib.parse import quote, unquote_plus

MOST_SHOWN = 1000
"""Characters of a URL."""
LONGEST_QUERY, MOST_PARAMETERS = 1 << 13, 100
_REPOSITORIES = ("hf", "modelscope")
"""Schemes in which `name@revision` may stand where other schemes have `user@host`."""
_SECRET = re.compile(r":|hf_\w{20,}|ms-[0-9a-f-]{36}")
"""Secret in front of the `@` of a hub's URL: a password, or a token as Hugging Face and ModelScope make them."""
_HOST = re.compile(r"([^:]*|\[[^\]]*\])(:\d*)?")
_CONTENT = re.compile(r"sha256=[0-9a-f]{64}")
_SECRET_NAME = re.compile(
    r"(signature|credential|(?<!page)(?<!page_)token|password|passwd|secret|accesskeyid|[-_]key|^key|^sig)$", re.I
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")


def shown_url(text: str) -> str:
    """The URL without user, query and fragment, but for the digest of a hub's content; a name or a path as it is."""
    scheme, colon, rest = text.partition("://")
    if not colon:
        return text
    rest, _, fragment = rest.partition("#")
    authority, slash, path = rest.partition("?")[0].partition("/")
    user, at, host = authority.rpartition("@")
    if not _HOST.fullmatch(host):
        return f"{scheme}://***"  # a password that has one of / ? # in it, not encoded
    if at and (scheme.lower() not in _REPOSITORIES or _SECRET.search(user)):
        authority = f"***@{host}"
    digest = f"#{fragment}" if _CONTENT.fullmatch(fragment) else ""
    return f"{scheme}://{authority}{slash}{path}"[:MOST_SHOWN] + digest


def without_secrets(text: str) -> str:
    """A message of a library, in which URLs may stand."""
    return _URL.sub(lambda found: shown_url(found[0]), text)


def shown_target(target: str) -> str:
    """The target of a request. URLs in its query are shown as by `shown_url`; of parameters whose names say that they
    are secret, as those of a signed URL that was not encoded, no value is shown. A query of more than
    `LONGEST_QUERY` characters or `MOST_PARAMETERS` is not shown: it would hold up whoever writes the log."""
    path, mark, query = target.partition("?")
    if not mark:
        return target
    if len(query) > LONGEST_QUERY or query.count("&") >= MOST_PARAMETERS:
        return f"{path}?…"
    return f"{path}?{'&'.join(map(_shown_parameter, query.split('&')))}"


def _shown_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if equals and _SECRET_NAME.search(unquote_plus(name)):
        return f"{name}=***"
    plain = unquote_plus(value)
    return f"{name}={quote(shown_url(plain), safe=':/@*')}" if "://" in plain else text
