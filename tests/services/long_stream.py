"""Streams `{"count": n, "size": bytes, "dir": folder}` chunks without a pause, each of the letter of its number.

Writes the number of each chunk, when it is made, into the file `mark` of that folder; at the end the word `closed`.
"""

import json
import os

from msx_sdk import send_intermediate_predict_response


def generator(data, context):
    orders = [order_of(row) for row in data]
    try:
        for n in range(max(order["count"] for order in orders)):
            yield [piece(order, n) if n < order["count"] else None for order in orders]
    finally:
        mark(orders[0], "closed")


def send(data, context):
    orders = [order_of(row) for row in data]
    for n in range(orders[0]["count"]):
        send_intermediate_predict_response([piece(order, n) for order in orders], context.request_ids, "", 200, context)
        if context.cancelled(0):
            break
    mark(orders[0], "closed")
    return ["" for _ in data]


async def coroutine(data, context):
    order = order_of(data[0])
    try:
        for n in range(order["count"]):
            yield [piece(order, n)]
    finally:
        mark(order, "closed")


async def drains(data, context):
    order = order_of(data[0])
    try:
        for n in range(order["count"]):
            context.send([piece(order, n)])
            await context.drain()
    finally:
        mark(order, "closed")
    return [""]


def piece(order, n):
    mark(order, n)
    return bytes([65 + n % 26]) * order["size"]


def mark(order, line):
    if "dir" in order:
        with open(os.path.join(order["dir"], "mark"), "a") as file:
            file.write(f"{line}\n")


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
