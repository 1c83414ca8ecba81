"""Metadata of calls: pairs of a name and a value, which is bytes where the name ends in `-bin`."""

from collections.abc import Iterable

Metadata = Iterable[tuple[str, str | bytes]]

REQUEST_ID = "x-request-id"
"""Key of requests, where the client may choose the id of its call, and of all answers."""
