"""The client of docs/grpc.md, as it stands there."""

import asyncio
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.frontend.net.grpc.harness import answer, serving

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/grpc.md").read_text()
PROTOS = ROOT / "frontend/msx_net/grpc/protos"


def block(language: str, containing: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(text for text in blocks if containing in text)


async def python(folder: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="grpcio-tools is not installed (extra dev)")
def test_the_python_client(tmp_path: Path) -> None:
    command = next(line for line in block("sh", "protoc").splitlines() if "protoc" in line)
    (tmp_path / "protos").symlink_to(PROTOS)
    (tmp_path / "three.png").write_bytes(b"png")
    (tmp_path / "key_file.json").write_text('{"inference": {"key": "K"}}')

    async def main() -> str:
        await python(tmp_path, *command.split()[1:])
        async with serving() as served:
            client = block("python", "Stub").replace("127.0.0.1:7070", served.server.inference.address)
            (tmp_path / "client.py").write_text(client)
            ran = asyncio.ensure_future(python(tmp_path, "client.py", "digits", "three.png"))
            for chunks in ((b"three",), (b"th", b"ree")):
                job = await served.registry.next_job()
                assert (job.model_name, job.fields[0].data) == ("digits", b"png")
                answer(job, *chunks)
            return await ran

    assert asyncio.run(main()) == "three\nthree"
