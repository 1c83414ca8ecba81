"""An async handler: calls of two requests meet, which they cannot one after the other."""

import asyncio

from ts.handler_utils.utils import send_intermediate_predict_response

waiting = {}


class Many:
    def initialize(self, context):
        context.mark = "of the load"

    async def handle(self, data, context):
        name = data[0]["body"].decode()
        before, context.mark = context.mark, name
        met = waiting.setdefault(name[:-1], asyncio.Event())
        if name.endswith("2"):
            met.set()
        await met.wait()
        send_intermediate_predict_response([f"{name} "], context.request_ids, "ok", 200, context)
        return [f"of {len(data)}, {context.mark}, {before}"]
