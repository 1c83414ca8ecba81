"""Compiles constraints from untrusted clients."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from msx_core.failures import shortened
from msx_llm.sampling.grammar import grammar
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import Constraint

MAX_CHARACTERS = {"json_schema": 256 << 10}
MAX_OTHERS = 32 << 10
"""Characters. A grammar of this length costs about a second at worst."""
STACK = 256 << 20
"""Bytes, of which only what is used takes memory. The compiler descends into every `$ref`: a chain of 1,000 needs more
than the usual 8 MiB, and a stack overflow would end the process. A schema at the limit needs less than half of this."""
MAX_MESSAGE = 500
NO_TEXT = "NoExtensionBias"
"""llguidance's message for a grammar that matches no text."""
_starting = threading.Lock()


def compiled(tokenizer: LLTokenizer, constraint: Constraint) -> LLMatcher:
    """Compiles, and takes the first step as a trial: it finds more errors, and is the most expensive step. Raises
    InvalidInput."""
    limit = MAX_CHARACTERS.get(constraint.kind, MAX_OTHERS)
    if len(constraint.value) > limit:
        raise InvalidInput(
            f"constraint: the {constraint.kind} has {len(constraint.value)} characters, the limit is {limit}"
        )
    result: Future[LLMatcher] = Future()
    _start(lambda: _compile(tokenizer, constraint, result)).join()
    return result.result()


def one_line(text: str) -> str:
    """llguidance's message without its sketch of the position."""
    if text.startswith(NO_TEXT):
        return "there is not a text that it allows"
    lines = [line.strip() for line in text.splitlines() if line and not line[0].isspace() and not line.startswith("<")]
    return shortened(" ".join(lines), MAX_MESSAGE)


def _compile(tokenizer: LLTokenizer, constraint: Constraint, result: Future[LLMatcher]) -> None:
    try:
        matcher = LLMatcher(tokenizer, grammar(constraint), log_level=0, limits=LLParserLimits(verbose_errors=False))
        if message := matcher.get_error() or _trial(matcher):
            raise InvalidInput(f"constraint: invalid {constraint.kind}: {one_line(message)}")
        result.set_result(matcher)
    except BaseException as error:  # of the thread that waits, a panic of the library's included
        result.set_exception(error)


def _trial(matcher: LLMatcher) -> str:
    """The error of the first token's step, if any."""
    bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
    trial = matcher.deep_copy()
    if bits.any() and not matcher.is_error():
        trial.consume_token(int(np.unpackbits(bits, bitorder="little").argmax()))
    return trial.get_error()


def _start(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, name="constraint")
    with _starting:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return thread
