"""Where the server is, which models it lists, and what its parrot tells of itself."""

import json
import sys
import time
import urllib.request

URL, MANAGEMENT, KEY, MANAGEMENT_KEY, GRPC = sys.argv[2:7]


def listed():
    """Names of its models, with their aliases and adapters."""
    request = urllib.request.Request(f"{URL}/v1/models", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return {model["id"] for model in json.load(reply)["data"]}


def parrot():
    """How many of its requests run, and how many were cancelled."""
    request = urllib.request.Request(
        f"{MANAGEMENT}/models/parrot?customized=true", headers={"Authorization": f"Bearer {MANAGEMENT_KEY}"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)[0]["customizedMetadata"]


def wait_for_cancels(count):
    deadline = time.monotonic() + 120
    while (seen := parrot()["cancelled"]) < count:
        assert time.monotonic() < deadline, f"{seen} requests were cancelled, not {count}"
        time.sleep(0.02)
