"""Terminal escapes of clients: no log carries them, whatever part of a request they are in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversary.asks import Ask
from tests.adversary.carrying import named
from tests.adversary.rig import KEYS, WHOLE, Attack, Rig, run_rig
from tests.adversary.watch import CALM, watched
from tests.adversary.wires import Answer, Http1, Http2, answer_to
from tests.e2e.server import pack_service, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LOGS = ("model_log.log", "ts_log.log", "access_log.log")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tab and line feed; a terminal obeys U+009B, too."""
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x7f\x1b"
QUOTED = "%1b%5b2J%9b31m%0d%07"
HEADERS = ("x-request-id", "user-agent", "referer", "x-forwarded-for", "traceparent", "accept", "x-own")
CLEAR_SCREEN = "[2J"
"""The end of an escape sequence, which is no control character."""


def hostile(attack: Attack) -> Iterator[tuple[Ask, str, dict[str, str]]]:
    """Requests with the key that they bear and further headers, each with escapes in one place."""
    ask, key = attack.ask, attack.key
    for path in (f"{ask.path}{ESCAPES}", f"{ask.path}/{QUOTED}", f"{ask.path}?{QUOTED}={QUOTED}"):
        yield ask._replace(path=path), key, {}
    yield ask._replace(method=f"{ask.method}{ESCAPES}"), key, {}
    yield ask._replace(body=ask.body + ESCAPES.encode()), key, {}
    yield ask, f"{key}{ESCAPES}", {}
    yield ask, key, {f"x{ESCAPES}": "x"}
    yield from ((ask, key, {name: f"a{ESCAPES}b"}) for name in HEADERS)


async def send(attack: Attack) -> str:
    """Each on a connection of its own, as the first one may end it."""
    for ask, key, headers in hostile(attack):
        async with attack.connected() as wire:
            await answer_to(wire, ask, key, headers)
    return ""


async def send_all(attacks: list[Attack]) -> list[str]:
    room = asyncio.Semaphore(20)

    async def one(attack: Attack) -> str:
        async with room:
            return await named(attack.name, send(attack))

    return [fault for fault in await asyncio.gather(*map(one, attacks)) if fault]


async def say(rig: Rig, text: str) -> list[Answer]:
    """To a handler that prints and logs it, over each version of HTTP."""
    ask = Ask(
        "TorchServe", "inference", "inference", "POST", "/predictions/says", text.encode(), "application/octet-stream"
    )
    door = next(door for door in rig.doors if door.has(ask))
    answers = []
    for wire_of in (Http1, Http2):
        attack = Attack(ask, door, wire_of, KEYS["inference"])
        async with attack.connected() as wire:
            answers.append(await answer_to(wire, ask, attack.key))
    return answers


def carried(rig: Rig) -> list[str]:
    """Lines of the logs that have control characters. The server's output is JSON here: it goes to a file."""
    files = [rig.server.log, *(log_file(rig, name) for name in LOGS)]
    lines = [(file.name, line) for file in files for line in file.read_text(errors="replace").split("\n")]
    return [f"{name}: {line!r}" for name, line in lines if CONTROL.search(line)]


def log_file(rig: Rig, name: str) -> Path:
    (found,) = rig.server.folder.rglob(name)
    return found


def test_of_every_part_of_a_request(tmp_path: Path) -> None:
    with run_rig(tmp_path, WHOLE) as rig:
        reply = rig.server.register(pack_service("says", rig.server.store, config="minWorkers: 1\n"))
        assert reply.status_code == 200, reply.text
        with watched(rig) as faults:
            for text, status in ((ESCAPES, 200), (f"{ESCAPES}\r\n\t!", 503)):
                answers = asyncio.run(say(rig, text))
                faults += [f"a handler's text: {one}" for one in answers if one.status != status]
            faults += asyncio.run(send_all(list(rig.attacks)))
            said = log_file(rig, "model_log.log")
            logged = lambda: said.read_text().count(CLEAR_SCREEN) >= 4  # noqa: E731
            wait_until(logged, "the handler's text is logged", said.read_text, CALM)
            faults += carried(rig)
