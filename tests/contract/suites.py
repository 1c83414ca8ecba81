"""Checks of language models by the clients that users have: the tests of each engine run those that it has models for.

| suites | models that they ask | our engine | vLLM |
|---|---|---|---|
| LAYOUTS | `one`, and the same model over ranks | tests/e2e/test_llama_parallel.py | tests/vllm/test_clients.py |
| MEMBERS | `llama`, `taught` | tests/long/test_llm_clients.py | the same file |
| ALONE | the default one | tests/long/test_alone.py | the same file |
| PARROT | `parrot`, a service of the tests | tests/long/test_parrot_clients.py | – |
| VECTORS | `vectors`, and `labels` with two | tests/long/test_vector_clients.py | tests/vllm/test_clients.py |
| ADAPTED | `adapted`, and families by their names | tests/long/test_family_clients.py | the same file |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.contract import npm_runs
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


class NpmSuite(NamedTuple):
    """A file of checks in JavaScript, and the environment of npm that it runs in."""

    file: str
    environment: str

    @property
    def name(self) -> str:
        return f"{self.file}.mjs"

    @property
    def checks(self) -> list[tuple[str, str]]:
        return [(self.name, check) for _, check in npm_runs.checks_of(self.file, LONG)]

    def run(self, server: RunningServer) -> dict[str, str]:
        """Outcome of each check."""
        return npm_runs.run_npm([self.file], server, npm_runs.make_packages(self.environment), LONG)[self.file]


LAYOUTS = (Suite("engine", folder=CLIENTS),)
MEMBERS: tuple[Suite | NpmSuite, ...] = (
    Suite("openai_long", "openai"),
    Suite("langchain_long", "openai"),
    Suite("pydantic_ai_long", "openai"),
    Suite("litellm_long", "litellm"),
    Suite("cohere_long", "cohere"),
    Suite("anthropic_long"),
    Suite("ollama_long"),
    Suite("reflection_long", "grpc"),
    Suite("semantic_kernel_long", "semantic_kernel"),
    *(NpmSuite(f"{name}_long", name) for name in ("anthropic", "cohere", "langchain", "ollama")),
)
VECTORS = (Suite("vectors_long", "openai"), Suite("mteb_long", "mteb"))
PARROT = (
    Suite("cohere_client", "cohere"),
    Suite("mteb_client", "mteb"),
    Suite("reflection_client", "grpc"),
    Suite("semantic_kernel_client", "semantic_kernel"),
)
ALONE = (Suite("text_generation_long", "litellm"),)
ADAPTED = (Suite("families_openai", "openai"), Suite("families_litellm", "litellm"), Suite("families_hub"))


def checks(suites: Iterable[Suite | NpmSuite]) -> list[tuple[str, str]]:
    return [pair for suite in suites for pair in suite.checks]


def outcomes_of(suites: Iterable[Suite | NpmSuite], server: RunningServer) -> dict[str, dict[str, str]]:
    """Outcomes of the checks by their suite's name and their own."""
    return {suite.name: suite.run(server) for suite in suites}
