"""Chat templates that requests bring: strangers' programs, each in a process of its own.

Jinja's sandbox keeps a template from what it must not see, but bounds neither its time nor its memory, and what runs in
a thread cannot be stopped. So the process has limits that the kernel keeps, and ends with the one prompt that it makes.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from msx_core.chat_templates.conversation import conversation
from msx_core.chat_templates.messages import Message
from msx_core.chat_templates.sandbox import environment, failure_of
from msx_core.errors import InvalidInput
from msx_core.generation.wire import decode, encode
from msx_core.module_command import module_command

CPU_SECONDS = 2
"""Seconds of processor time; the start takes a quarter of a second."""
SECONDS = 20
"""Seconds of elapsed time, for a machine that is busy."""
MEMORY = 512 << 20
LONGEST = 4 << 20
"""The most characters of a prompt."""
AT_ONCE = 2
"""Processes, also of clients that have left: a thread waits for each, and is not free before."""


class RenderTask(msgspec.Struct):
    template: str
    values: dict[str, Any]


class RenderResult(msgspec.Struct):
    """The prompt, or the failure."""

    written: str | None = None
    failure: str = ""


class RequestTemplates:
    """`tokens`: `bos_token` and so on."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = dict(tokens)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="chat-templates")

    async def render(
        self, template: str, messages: list[Message], tools: list[dict[str, Any]] | None = None, /, **options: Any
    ) -> str:
        """As `ChatTemplate.render`. Raises InvalidInput, which names `chat_template`, if it fails or exceeds a
        limit."""
        asked = conversation(self._tokens, messages, tools, **options)
        loop = asyncio.get_running_loop()
        written = await loop.run_in_executor(self._threads, written_apart, template, asked.values)
        return asked.prompt(written)


def written_apart(template: str, values: dict[str, Any]) -> str:
    """Renders in a process of its own, within `SECONDS`. Raises InvalidInput."""
    try:
        done = subprocess.run(
            module_command(sys.executable, __name__),
            input=encode(RenderTask(template, values)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            env=plain_environment(),
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"chat_template: it took longer than {SECONDS} s") from None
    if done.returncode == -signal.SIGXCPU:
        raise InvalidInput(f"chat_template: it took more than {CPU_SECONDS} s of processor time")
    if done.returncode:
        raise InvalidInput(f"chat_template: it ended its process, which may have {MEMORY >> 20} MiB of memory")
    outcome = decode(done.stdout, RenderResult)
    if outcome.written is None:
        raise InvalidInput(f"chat_template: {outcome.failure}")
    return outcome.written


def plain_environment() -> dict[str, str]:
    """Environment of a process of this interpreter: nothing of the worker's own variables."""
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def outcome_of(work: RenderTask) -> RenderResult:
    try:
        written = environment().from_string(work.template).render(work.values)
    except MemoryError:
        return RenderResult(failure=f"it needs more than {MEMORY >> 20} MiB of memory")
    except Exception as error:  # a stranger's program: it may fail in any way
        return RenderResult(failure=failure_of(error))
    if len(written) > LONGEST:
        return RenderResult(failure=f"it writes {len(written)} characters, the limit is {LONGEST}")
    return RenderResult(written)


def main() -> None:
    """The main function of that process: reads a `RenderTask` from standard input, writes a `RenderResult` to standard
    output."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(encode(outcome_of(decode(sys.stdin.buffer.read(), RenderTask))))


if __name__ == "__main__":
    main()
