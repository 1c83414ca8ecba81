"""Does what an async handler must not do: blocks the loop, for the seconds in the body."""

import time


async def handle(data, context):
    time.sleep(float(data[0]["body"]))
    return ["blocked"]
