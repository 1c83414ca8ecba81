"""Calls sys.exit with the status in the body, as a script's main() might."""

import sys


def handle(data, context):
    sys.exit(int(data[0]["body"]))
