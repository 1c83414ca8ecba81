"""The language models of transformers 5.19.0, by `model_type`: `python -m tests.core.model_types` writes the table anew
after a family is added."""

from __future__ import annotations

from pathlib import Path

from msx_core.model_families import DECODERS, ENCODERS
from msx_core.unknown_families import VLLMS, nearest

TABLE = Path(__file__).parent / "data" / "model_types.txt"


def rows() -> list[list[str]]:
    """The model type, who serves its texts, and the nearest family of the engine, or -."""
    return [line.split() for line in TABLE.read_text().splitlines()]


def server_of(kind: str) -> str:
    if kind in DECODERS:
        return "own"
    if kind in ENCODERS:
        return "embedding"
    return "vllm" if kind in VLLMS else "nobody"


def main() -> None:
    found = (f"{kind} {server_of(kind)} {nearest(kind, DECODERS) or '-'}\n" for kind, *_ in rows())
    TABLE.write_text("".join(found))


if __name__ == "__main__":
    main()
