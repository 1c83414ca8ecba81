"""Answers one request from standard input: `python -m msx_llm.sizing`, as `msx-serve plan` starts it."""

import sys

import msgspec

from msx_core.sizing import Sizing, SizingRefusal, SizingRequest
from msx_llm.sizing.estimate import estimate
from msx_sdk.errors import HandlerLoadError


def answer(request: bytes) -> Sizing | SizingRefusal:
    try:
        return estimate(msgspec.json.decode(request, type=SizingRequest))
    except (HandlerLoadError, OSError) as error:
        return SizingRefusal(str(error))


def main() -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer(sys.stdin.buffer.read())))


if __name__ == "__main__":
    main()
