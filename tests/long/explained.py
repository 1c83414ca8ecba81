"""Findings of schemathesis and why they are right, one line each."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.long.schemathesis import Finding


class Explained(NamedTuple):
    """Patterns of an operation and of a finding's text. `status` 0 is any."""

    operation: str
    check: str
    status: int
    text: str
    reason: str

    def explains(self, found: Finding) -> bool:
        return (
            re.fullmatch(self.operation, found.operation) is not None
            and found.check == self.check
            and self.status in (0, found.status)
            and re.search(self.text, found.text) is not None
        )


EXPLAINED = [
    Explained(
        r"\w+ (/explanations/.*|/v1/models/.*:explain|/v2/models/.*/explain)",
        "not_a_server_error",
        501,
        "has no explanations",
        "the handler explains nothing, and says so with the status that TorchServe gives it",
    ),
    Explained(
        r"POST .*",
        "not_a_server_error",
        503,
        "Prediction failed: ",
        "an exception of a handler that does not look at its input is 503, TorchServe's rule",
    ),
    Explained(
        r"POST /v2/models/.*/infer",
        "not_a_server_error",
        501,
        r"This model takes \w+, not tensors",
        "a typed handler does not offer this operation",
    ),
    Explained(
        r"\w+ .*",
        "not_a_server_error",
        503,
        "has no worker to serve",
        "a call before has scaled the model to no workers",
    ),
    Explained(
        r"POST ((/openai)?/v1/(chat/)?completions|/v2/chat)",
        "response_schema_conformance",
        200,
        "cannot deserialize payload for `application/json`",
        "OpenAI's streams, and Cohere's, end with the event [DONE], which is not JSON",
    ),
    Explained(
        r"POST .*(predict|invocations).*",
        "content_type_conformance",
        200,
        "Missing Content-Type header",
        "bytes that a handler returns have the type that it gives them, or none, TorchServe's rule",
    ),
    Explained(
        r"POST .*(predict|invocations).*",
        "response_schema_conformance",
        200,
        "Content deserialization error",
        "such bytes, which schemathesis reads as JSON",
    ),
    Explained(
        r"POST .*norms.*",
        "error",
        0,
        "shape -> items",
        "schemathesis turns prefixItems, which JSON Schema 2020-12 has, into a list of items, which it has not",
    ),
]
