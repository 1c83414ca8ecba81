"""grpc.aio alone, the upper limit of servers on it: answers where it reads; no worker, token, metric or log line."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import grpc
import uvloop

from benchmarks.load.client import Address
from msx_net.grpc.messages import message_class

SERVICE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
LIMIT = 10.0

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")


@contextlib.contextmanager
def serve_echo() -> Iterator[tuple[Address, int]]:
    """Its address and its process's id."""
    process = subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True)
    try:
        port = process.stdout.readline() if process.stdout else ""
        if not port:
            raise click.ClickException("The bare gRPC server did not start.")
        yield Address("127.0.0.1", int(port)), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)


async def _echo(request: Any, _: object) -> Any:
    return Response(prediction=request.input["body"])


async def _serve() -> None:
    method = grpc.unary_unary_rpc_method_handler(_echo, Request.FromString, Response.SerializeToString)
    server = grpc.aio.server(handlers=[grpc.method_handlers_generic_handler(SERVICE, {"Predictions": method})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve())
