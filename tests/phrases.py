"""Sentences of the product that tests of many parts compare: each is changed here alone."""

from __future__ import annotations


def worker_died(reason: str) -> str:
    """The message of requests whose worker has ended, or the beginning of one, as far as `reason` goes."""
    return f"Worker died. {reason}"


def did_not_respond(waited: str) -> str:
    """The reason of a worker that was ended because its call took too long."""
    return f"The worker did not respond within responseTimeout ({waited})."


def no_worker(model: str, *, version: str = "", request: str = "inference") -> str:
    """The beginning of the message of requests that nobody can answer. `version` is there where they name one."""
    named = f" Version {version}" if version else ""
    return f'Model "{model}"{named} has no worker to serve {request} request'
