"""Tells by which interpreter it runs."""

import sys


def handle(data, context):
    return [{"executable": sys.executable, "prefix": sys.prefix}] * len(data)
