"""Blocks for `{"seconds": s}` and looks at nothing meanwhile. Marks start and end in the file `mark`."""

import time

from msx_sdk import Handler


class Blocking(Handler):
    def inference(self, inputs):
        for row in inputs:
            mark(row["body"], "started")
            time.sleep(row["body"]["seconds"])
            mark(row["body"], "done")
        return [{"slept": row["body"]["seconds"]} for row in inputs]


def mark(order, line):
    if "mark" in order:
        with open(order["mark"], "a") as file:
            file.write(line + "\n")
