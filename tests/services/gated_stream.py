"""Streams `{"count": n, "dir": folder}` numbers; all but the first wait for a file of their number in `folder`; those
of `events`, which are server-sent events, wait all.

Marks each number that it has made, and its end, in the file `mark` of that folder.
"""

import asyncio
import json
import os
import time

from msx_sdk import send_intermediate_predict_response


def generator(data, context):
    order = order_of(data[0])
    try:
        for n in range(1, order["count"] + 1):
            while n > 1 and not opened(order, n):
                time.sleep(0.005)
            mark(order, n)
            yield [f"{n}\n" for _ in data]
    finally:
        mark(order, "closed")


def send(data, context):
    order = order_of(data[0])
    for n in range(1, order["count"] + 1):
        while n > 1 and not opened(order, n):
            time.sleep(0.005)
        mark(order, n)
        send_intermediate_predict_response([f"{n}\n" for _ in data], context.request_ids, "", 200, context)
    return ["end\n" for _ in data]


async def coroutine(data, context):
    order = order_of(data[0])
    try:
        for n in range(1, order["count"] + 1):
            while n > 1 and not opened(order, n):
                await asyncio.sleep(0.005)
            mark(order, n)
            yield [f"{n}\n"]
    finally:
        mark(order, "closed")


def events(data, context):
    order = order_of(data[0])
    context.set_response_content_type(0, "text/event-stream")
    for n in range(1, order["count"] + 1):
        while not opened(order, n):
            time.sleep(0.005)
        yield [f"data: {n}\n\n"]


def opened(order, n):
    return os.path.exists(os.path.join(order["dir"], str(n)))


def mark(order, line):
    with open(os.path.join(order["dir"], "mark"), "a") as file:
        file.write(f"{line}\n")


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
