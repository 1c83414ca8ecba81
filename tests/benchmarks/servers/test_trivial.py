"""The server that has its answer ready."""

from __future__ import annotations

import asyncio
import os

from benchmarks.load.client import Address, Answer, Connection, answers
from benchmarks.load.wrk import STRING
from benchmarks.servers import trivial
from benchmarks.servers.trivial import request_size
from tests.processes import children_of


def test_every_request_of_the_load_is_as_long_as_the_trivial_server_takes_it_to_be() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 128\r\n\r\n"
    assert request_size(head + b"x" * 300) == len(head) + 128
    assert request_size(b"GET / HTTP/1.1\r\n\r\n") == 18
    assert """'"' .. string.rep("x", 126) .. '"'""" in STRING % 126


async def ask(address: Address) -> list[Answer]:
    connection = await Connection.open(address)
    try:
        return [await connection.post("/", body) for body in (b"x" * 100_000, b"y" * 100_000)]
    finally:
        connection.leave()


def test_the_trivial_server_answers_each_request_and_ends() -> None:
    before = {*children_of(os.getpid(), recursive=True)}
    with trivial.serve(300_000) as address:
        assert asyncio.run(ask(address)) == [(200, b"x" * 300_000)] * 2
    assert {*children_of(os.getpid(), recursive=True)} <= before
    assert not answers(address, "/")
