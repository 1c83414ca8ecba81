"""JSON schemas, regular expressions, choices and grammars as masks over the vocabulary, by llguidance."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from msx_llm.sampling.compiling import compiled, one_line
from msx_llm.sampling.trie import trie_tokenizer
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import Constraint

KEPT = 64
"""The number of compiled constraints that are kept: applications send the same schema again and again."""


class ConstraintState:
    """The progress of one text in its constraint."""

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        self._matcher, self._vocab_size = matcher, vocab_size
        self._mask: NDArray[np.bool_] | None = None

    def mask(self) -> NDArray[np.bool_]:
        """[vocab]: the tokens that are allowed next. It is computed once for each place in the text."""
        if self._mask is None:
            bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
            self._mask = np.unpackbits(bits, count=self._vocab_size, bitorder="little").view(np.bool_)
        return self._mask

    def accept(self, token: int) -> bool:
        """Returns False if the token is not allowed here, or a limit was exceeded: see `failure`."""
        self._mask = None
        return self._matcher.consume_token(token)

    @property
    def is_stopped(self) -> bool:
        """Only the end of the text may follow."""
        return self._matcher.is_stopped()

    @property
    def failure(self) -> PredictionError | None:
        if not self._matcher.is_error():
            return None
        return InvalidInput(f"constraint: it cannot be followed any further ({one_line(self._matcher.get_error())})")


class Constraints:
    """Compiles constraints for a model's tokenizer, and keeps them for later requests.

    `tokenizer` is the text of a tokenizer.json whose tokens are bytes (byte-level or with byte fallback); otherwise
    ValueError is raised. `eos` must not be empty. `vocab_size` is the model's: the width of its logits.
    """

    def __init__(self, tokenizer: str, eos: Iterable[int], vocab_size: int) -> None:
        self._tokenizer, self._vocab_size = trie_tokenizer(tokenizer, eos, vocab_size), vocab_size
        self._compiled: OrderedDict[Constraint, LLMatcher] = OrderedDict()
        self._lock = Lock()

    def compile(self, constraint: Constraint) -> ConstraintState:
        """A constraint at its beginning. Raises InvalidInput with what is wrong with it. Any thread may call this.

        The first time takes milliseconds for most, about a second for what the limits only just allow, so that an event
        loop had better leave it to a thread; the next time it takes microseconds.
        """
        with self._lock:
            matcher = self._compiled.get(constraint)
        if matcher is None:
            matcher = compiled(self._tokenizer, constraint)
        self._keep(constraint, matcher)
        return ConstraintState(matcher.deep_copy(), self._vocab_size)

    def _keep(self, constraint: Constraint, matcher: LLMatcher) -> None:
        with self._lock:
            self._compiled[constraint] = matcher
            self._compiled.move_to_end(constraint)
            if len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
