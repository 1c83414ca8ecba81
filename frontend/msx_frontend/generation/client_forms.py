"""APIs that share paths with others: their clients say by a header whose form they expect."""

from msx_core.service_errors import ServiceError
from msx_frontend.generation.errors import anthropic_failure, as_json, cohere_failure
from msx_net.http.family import Failure, Family
from msx_net.http.head import Head

ANTHROPIC_HEADER = b"anthropic-version"
"""Clients of Anthropic's API send it with each request."""
COHERE_HEADER, COHERE_CLIENTS = b"x-fern-sdk-name", "cohere"
"""The header in which Cohere's libraries say who they are, and how its value begins."""
REQUEST_ID = "request-id"
"""Header of the request's id in Anthropic's API."""


def is_anthropic(head: Head) -> bool:
    return bool(head.header(ANTHROPIC_HEADER))


def is_cohere(head: Head) -> bool:
    return head.header(COHERE_HEADER).startswith(COHERE_CLIENTS)


def expected_form(head: Head) -> Family | None:
    """API whose form the client expects; None: that of the path's own one."""
    if is_anthropic(head):
        return ANTHROPIC
    return COHERE if is_cohere(head) else None


def _anthropic(error: ServiceError) -> Failure:
    return as_json(anthropic_failure(error))


def _cohere(error: ServiceError) -> Failure:
    return as_json(cohere_failure(error))


ANTHROPIC = Family("Anthropic", (), _anthropic, error_event="error", id_header=REQUEST_ID)
COHERE = Family("Cohere", (), _cohere)
"""The forms of the two; their routes stand in their own packages."""
