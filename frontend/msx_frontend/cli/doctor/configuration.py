"""The settings, their keys that do nothing, and what this system cannot do for them."""

from collections.abc import Iterator

from msx_frontend.config.load import GivenSettings
from msx_frontend.findings import Finding, failed, ok, warning
from msx_frontend.supervision.needed import lacks

NAME = "configuration"


def check_configuration(settings: GivenSettings) -> Iterator[Finding]:
    """A key that is not known is a failure, although the server starts: what it should do is not done."""
    for one in settings.unknown:
        remedy = one.remedy[:1].upper() + one.remedy[1:] or "docs/server-config.md lists the keys."
        yield failed(NAME, f"{one.origin}: {one.key} is not a known key, and is ignored", remedy)
    if not settings.unknown:
        yield ok(NAME, f"{settings.file or 'no file: flags and defaults'}")


def check_supervisor(settings: GivenSettings) -> Iterator[Finding]:
    """Nothing where there can be one, which is usual. A server starts without one that nobody has asked for."""
    if settings.config.supervisor and (lack := lacks()):
        told = failed if "supervisor" in settings.given else warning
        found = f"this system {lack}: workers end with a server that crashes, and are never upgraded"
        yield told("supervisor", found, "Allow it, or set supervisor=false.")
