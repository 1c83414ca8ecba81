"""Deferred requests of a server, by its configuration."""

from __future__ import annotations

from functools import partial

from msx_frontend.config import ServerConfig
from msx_frontend.deferred.book import JobBook
from msx_frontend.deferred.callbacks.callbacks import Callbacks
from msx_frontend.deferred.callbacks.secrets import Signer, read_secrets
from msx_frontend.deferred.callbacks.sender import CallbackSender
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.keys.key import Key
from msx_frontend.keys.tokens import Tokens
from msx_frontend.store.store import Store
from msx_net.outgoing.allowed import AllowedHosts


def deferred_jobs(config: ServerConfig, store: Store | None, tokens: Tokens | None) -> DeferredJobs | None:
    """None where requests are not deferred. Blocks: it reads the secrets of callbacks. Raises StartError."""
    if store is None or not config.jobs:
        return None
    book = JobBook(store, config.jobs_days, config.max_jobs, config.jobs_size)
    at_once, limit = config.jobs_at_once, config.max_response_size
    return DeferredJobs(book, at_once, limit, partial(key_of, tokens), _callbacks(config, store))


def key_of(tokens: Tokens | None, owner: str) -> Key | None:
    """The key of an owner of jobs; None where none is asked for. Raises InvalidKey."""
    return tokens.named(owner) if tokens is not None and owner else None


def _callbacks(config: ServerConfig, store: Store) -> Callbacks | None:
    if not config.callback_hosts or config.callback_secrets is None:
        return None
    hosts, signer = AllowedHosts(config.callback_hosts), Signer(read_secrets(config.callback_secrets))
    return Callbacks(store, CallbackSender(hosts, signer, config.callback_timeout), hosts, config.max_callbacks)
