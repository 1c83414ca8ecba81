"""Checks of language models by the clients that users have: the tests of each engine run those that it has models for.

| suites | models that they ask | our engine | vLLM |
|---|---|---|---|
| LAYOUTS | `one`, and the same model over ranks | tests/e2e/test_llama_parallel.py | tests/vllm/test_clients.py |
| MEMBERS | `llama`, `taught` | tests/long/test_llm_clients.py | the same file |
| ALONE | the default one | tests/long/test_alone.py | the same file |
| PARROT | `parrot`, a service of the tests | tests/long/test_parrot_clients.py | – |
| ADAPTED | `adapted`, and families by their names | tests/long/test_family_clients.py | the same file |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.contract.runs import CLIENTS, ROOT, checks_of, make_environment, run
from tests.e2e.server import RunningServer
from tests.long.environments import environment

LONG = ROOT / "tests" / "long" / "clients"


class Suite(NamedTuple):
    """A file of checks, and the environment that it runs in; "" for that of the contract's clients."""

    name: str
    environment: str = ""
    folder: Path = LONG

    @property
    def checks(self) -> list[tuple[str, str]]:
        return checks_of(self.name, self.folder)

    def run(self, server: RunningServer) -> dict[str, str]:
        """Outcome of each check."""
        python = environment(self.environment) if self.environment else make_environment()
        return run(self.name, server, python, self.folder)


LAYOUTS = (Suite("engine", folder=CLIENTS),)
MEMBERS = (
    Suite("openai_long", "openai"),
    Suite("langchain_long", "openai"),
    Suite("pydantic_ai_long", "openai"),
    Suite("litellm_long", "litellm"),
    Suite("cohere_long", "cohere"),
)
PARROT = (
    Suite("cohere_client", "cohere"),
    Suite("mteb_client", "mteb"),
    Suite("reflection_client", "grpc"),
    Suite("semantic_kernel_client", "semantic_kernel"),
)
ALONE = (Suite("text_generation_long", "litellm"),)
ADAPTED = (Suite("families_openai", "openai"), Suite("families_litellm", "litellm"), Suite("families_hub"))


def checks(suites: Iterable[Suite]) -> list[tuple[str, str]]:
    return [pair for suite in suites for pair in suite.checks]


def outcomes_of(suites: Iterable[Suite], server: RunningServer) -> dict[str, dict[str, str]]:
    """Outcomes of the checks by their suite's name and their own."""
    return {suite.name: suite.run(server) for suite in suites}
