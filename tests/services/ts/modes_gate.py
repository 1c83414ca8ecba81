"""Answers when it is let go: an order names itself and a folder, in which each call is marked and waits for its file.

The file `order` has the names in the order of their calls. `free` waits for nothing, `crash` ends the process.
"""

import asyncio
import os
import time
from pathlib import Path


def handle(data, context):
    if context.get_request_header(0, "describe") == "True":
        return [{"described": len(data)}]
    for row in data:
        begin(row["body"])
    for row in data:
        while waiting(row["body"]):
            time.sleep(0.005)
    return [answer(row["body"], data, context) for row in data]


async def coroutine(data, context):
    begin(data[0]["body"])
    while waiting(data[0]["body"]):
        await asyncio.sleep(0.005)
    return [answer(data[0]["body"], data, context)]


def begin(order):
    gate = Path(order["gate"])
    with (gate / "order").open("a") as file:
        file.write(order["name"] + "\n")
    (gate / f"begun-{order['name']}").touch()
    if "crash" in order:
        os._exit(order["crash"])


def waiting(order):
    gate = Path(order["gate"])
    return not (order.get("free") or (gate / f"go-{order['name']}").exists() or (gate / "go").exists())


def answer(order, data, context):
    properties = context.system_properties
    return {
        "name": order["name"],
        "batch": [row["body"]["name"] for row in data],
        "pid": os.getpid(),
        "gpu_id": properties.get("gpu_id"),
        "batch_size": properties.get("batch_size"),
        "config": context.model_yaml_config,
    }
