"""Streams numbers until its client leaves; then makes the file whose path is the request's body, of any type."""

import asyncio
from itertools import count


async def handle(data, context):
    path = bytes(data[0]["body"]).decode()
    try:
        for n in count(1):
            yield [f"{n}\n"]
            await asyncio.sleep(0.01)
    finally:
        open(path, "w").close()
