"""A server of S3 on this machine, by moto."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}


class S3Server(NamedTuple):
    endpoint: str
    client: Any
    """boto3's."""

    @property
    def env(self) -> dict[str, str]:
        """For those who ask it."""
        return {"AWS_ENDPOINT_URL": self.endpoint, **KEYS}


@contextmanager
def s3_server() -> Iterator[S3Server]:
    pytest.importorskip("moto")
    server = importlib.import_module("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    try:
        yield S3Server(endpoint, importlib.import_module("boto3").client("s3", endpoint_url=endpoint, **keys))
    finally:
        server.stop()
