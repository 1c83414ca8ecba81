"""Writes the id of each request into the file that it names, and answers with the id a little later."""

import json
import os
import time


def handle(data, context):
    orders = [json.loads(row["body"]) if isinstance(row["body"], (bytes, bytearray)) else row["body"] for row in data]
    for order in orders:
        file = os.open(order["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{order['id']}\n".encode())
        os.close(file)
    time.sleep(0.003)
    return [order["id"] for order in orders]
