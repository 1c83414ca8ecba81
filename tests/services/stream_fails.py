"""Streams `{"after": n}` chunks, then fails: with the status in `status` where there is one."""

import json

from msx_sdk import PredictionError


def generator(data, context):
    order = order_of(data[0])
    for n in range(order["after"]):
        yield [f"{n}\n" for _ in data]
    raise error_of(order)


async def coroutine(data, context):
    order = order_of(data[0])
    for n in range(order["after"]):
        yield [f"{n}\n"]
    raise error_of(order)


def item(data, context):
    order = order_of(data[0])
    for n in range(order["after"]):
        yield [f"{n}\n" for _ in data]
    yield [error_of(order) for _ in data]


def error_of(order):
    if "status" in order:
        return PredictionError(order["status"], "no more chunks")
    return RuntimeError("no more chunks")


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
