"""The addresses that a start script of MindSpore Serving opens, which ask for no key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from tests.adversary.asks import lists
from tests.adversary.carrying import carry_out
from tests.adversary.kinds import KINDS
from tests.adversary.rig import LIMITS, Attack, Door, at_doors
from tests.adversary.watch import LARGEST_SERVER
from tests.e2e.scripts import BEGIN, READY, run_script
from tests.e2e.test_serving_tutorials import ADD, predict, servable
from tests.free_ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SCRIPT = BEGIN + (
    "server.start_servables(server.ServableStartConfig('.', 'add', device_ids=0))\n"
    "server.start_grpc_server(f'127.0.0.1:{sys.argv[1]}', max_msg_mb_size=1)\n"
    "server.start_restful_server(f'127.0.0.1:{sys.argv[2]}', max_msg_mb_size=1)\n" + READY
)
OWN = ("MindSpore Serving", "mindspore.serving.proto.MSService")


async def attacks_on(folder: Path, grpc: int, rest: int) -> list[Attack]:
    """As of routes and methods that need no key: these addresses ask for none."""
    (folder / "lists").mkdir()
    async with lists(folder / "lists") as found:
        asks = [ask._replace(key=None) for ask in found.asks("add") if ask.family in OWN]
    doors = [
        Door("gRPC of the script", f"127.0.0.1:{grpc}", ("inference",), grpc=True),
        Door("REST of the script", f"127.0.0.1:{rest}", ("inference",)),
    ]
    found_at = list(at_doors(asks, doors))
    return [attack for attack in found_at if attack.door.grpc == attack.ask.grpc]


def test_its_addresses_are_attacked(tmp_path: Path) -> None:
    servable(tmp_path, "add", ADD)
    (tmp_path / "config.properties").write_text(LIMITS)
    grpc, rest = free_ports(2)
    with run_script(tmp_path, SCRIPT, str(grpc), str(rest)) as running:
        running.wait_ready()
        attacks = asyncio.run(attacks_on(tmp_path, grpc, rest))
        server = psutil.Process(running.server().pid)
        before, workers = server.memory_info().rss, running.below
        for name, kinds in KINDS.items():
            for kind in kinds:
                assert asyncio.run(carry_out(kind, attacks)) == [], name
            assert predict(rest, "add:add_common", {"x1": 1, "x2": 2}) == {"instances": [{"y": 3}]}
            assert server.memory_info().rss < before + LARGEST_SERVER, name
        assert running.below == workers
        assert "a bug of the server" not in running.log
