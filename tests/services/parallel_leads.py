"""An async handler over several ranks: rank 0 leads by itself. Every rank writes down what it did.

Body, as JSON: `folder`, `steps`, and `fails` (a rank that raises, or "all").
"""

import json
import pathlib
import time

from msx_sdk import Handler


class Leads(Handler):
    async def handle(self, data, context):
        asked = data[0]["body"]
        for step in range(asked["steps"]):
            message = json.dumps(asked | {"step": step}).encode()
            yield [await context.run(self.lead, message)]

    def lead(self, message):
        with self.context.lead(message):
            return self.follow(message)

    def follow(self, message):
        asked = json.loads(message)
        if asked.get("fails") in (self.context.rank, "all"):
            raise RuntimeError("no such step")
        if "fails" in asked:
            time.sleep(60)  # as in a collective that the other rank does not enter
        with (pathlib.Path(asked["folder"]) / f"rank-{self.context.rank}").open("a") as lines:
            lines.write(f"{asked['step']}\n")
        return f"{asked['step']};"
