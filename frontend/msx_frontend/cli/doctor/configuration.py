"""The settings, and their keys that do nothing."""

from collections.abc import Iterator

from msx_frontend.config.load import GivenSettings
from msx_frontend.findings import Finding, failed, ok

NAME = "configuration"


def check_configuration(settings: GivenSettings) -> Iterator[Finding]:
    """A key that is not known is a failure, although the server starts: what it should do is not done."""
    for one in settings.unknown:
        remedy = one.remedy[:1].upper() + one.remedy[1:] or "docs/server-config.md lists the keys."
        yield failed(NAME, f"{one.origin}: {one.key} is not a known key, and is ignored", remedy)
    if not settings.unknown:
        yield ok(NAME, f"{settings.file or 'no file: flags and defaults'}")
