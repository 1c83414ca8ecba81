"""How much text a model may hold at once: by model-config.yaml, or by the available memory.

All ranks of a group compute the same numbers: these depend only on the yaml, the model and what `memory` says of all
ranks.
"""

from dataclasses import dataclass

from msx_core.config import ModelConfig
from msx_sdk.errors import HandlerLoadError

SLOTS = (1, 4, 8, 16)
PREFILL = (16, 32, 128, 512)
MOST_GRAPHS = 12
"""The most graphs of the decoding step."""
ENOUGH_SLOTS = 4
"""If the yaml sets neither, this many texts at once are preferred to a longer context."""
SHORTEST = 256
"""Tokens; a shorter context does not get a graph of its own."""


@dataclass(frozen=True)
class EngineLimits:
    """Limits in tokens, unless stated otherwise. At most `slots` texts of at most `context` tokens run at once."""

    context: int
    max_input: int
    batch_prefill: int
    batch_total: int
    block: int
    max_concurrent: int
    """Requests in progress, including those that wait for a slot."""
    slot_buckets: tuple[int, ...]
    context_buckets: tuple[int, ...]
    prefill_buckets: tuple[int, ...]
    capture_buckets: tuple[int, ...] = ()

    @property
    def slots(self) -> int:
        return self.slot_buckets[-1]


@dataclass(frozen=True)
class CacheBudget:
    """Bytes that a rank has for all texts, that keys and values of one `token` take, and the states of one `text`."""

    memory: int
    token: int
    text: int

    @property
    def longest(self) -> int:
        """Tokens of a text that is alone."""
        return max(self.memory - self.text, 0) // max(self.token, 1)

    def texts(self, context: int) -> int:
        """How many texts of this length it holds."""
        return self.memory // max(context * self.token + self.text, 1)

    @property
    def held(self) -> str:
        beside = f" beside {self.text / (1 << 20):.1f} MiB of states" if self.text else ""
        return f"{self.longest} tokens{beside}"


def limits_of(
    config: ModelConfig, model_context: int, token_bytes: int, memory: int, text_bytes: int = 0
) -> EngineLimits:
    """`token_bytes`: keys and values of one token on one rank; `text_bytes`: what a text has beside them; `memory`:
    bytes that a rank has for all of them. Raises HandlerLoadError if the yaml asks for more than the model or
    `cacheMemory` allows."""
    budget = CacheBudget(memory, token_bytes, text_bytes)
    context = _context(config, model_context, budget)
    slots = _slot_buckets(config, context, budget)
    total = config.max_batch_total_tokens or slots[-1] * context
    prefill = min(config.max_batch_prefill_tokens or PREFILL[-1], context)
    return EngineLimits(
        context=context,
        max_input=min(config.max_input_tokens or context - 1, context - 1),
        batch_prefill=prefill,
        batch_total=max(total, context),
        block=config.block_size,
        max_concurrent=config.max_concurrent,
        slot_buckets=slots,
        context_buckets=_contexts(config, context, MOST_GRAPHS // len(slots)),
        prefill_buckets=_up_to(config.prefill_buckets or PREFILL, prefill),
        capture_buckets=_up_to(config.capture_buckets, slots[-1]) if config.capture_buckets else (),
    )


def _context(config: ModelConfig, model_context: int, budget: CacheBudget) -> int:
    wanted = config.max_total_tokens
    if wanted is None:
        return _longest(model_context, budget)
    check_context(config, model_context)
    if budget.texts(wanted) < 1:
        held = budget.held if budget.text else budget.longest
        raise HandlerLoadError(
            f"maxTotalTokens: {wanted} tokens do not fit the memory for keys and values, which holds {held}: give "
            "more by cacheMemory or cacheFraction, or less context"
        )
    return wanted


def check_context(config: ModelConfig, model_context: int) -> None:
    """Checks that are possible before the weights are read. Raises HandlerLoadError."""
    wanted = config.max_total_tokens
    if wanted is not None and wanted > model_context:
        raise HandlerLoadError(f"maxTotalTokens: {wanted} is more than the model's context of {model_context} tokens")


def _longest(model_context: int, budget: CacheBudget) -> int:
    """The model's own context, or the largest power of two of which several fit the memory."""
    context = model_context
    while context > SHORTEST and budget.texts(context) < ENOUGH_SLOTS:
        context = 1 << (context - 1).bit_length() - 1
    if budget.texts(context) < 1:
        raise HandlerLoadError(
            f"the memory for keys and values holds {budget.held}, which is not even one text of {context}: give more "
            "by cacheMemory or cacheFraction"
        )
    return context


def _slot_buckets(config: ModelConfig, context: int, budget: CacheBudget) -> tuple[int, ...]:
    return _up_to(config.slot_buckets or SLOTS, min(budget.texts(context), config.max_concurrent))


def _up_to(sizes: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """Ascending sizes that end with the largest possible one: `limit`, or the largest of `sizes`."""
    largest = min(limit, max(sizes))
    return (*sorted({size for size in sizes if size < largest}), largest)


def _contexts(config: ModelConfig, context: int, most: int) -> tuple[int, ...]:
    """Lengths up to the whole context, `most` at most. A graph that reads less of the cache is faster."""
    wanted = config.context_buckets or _lengths(context, most)
    shorter = sorted({size for size in wanted if size < context}, reverse=True)[: most - 1]
    return (*reversed(shorter), context)


def _lengths(context: int, most: int) -> list[int]:
    """Each twice the one before, or four times. Where the context is too long for that, a quarter of it, and a quarter
    of that: texts that are a little longer than a small part of it would attend to much more of it."""
    doubled = [SHORTEST << power for power in range(max((context - 1) // SHORTEST, 0).bit_length())]
    quarters = [size for power in range(1, most) if (size := context >> 2 * power) >= SHORTEST]
    return next((found for found in (doubled, doubled[::2]) if len(found) < most), quarters)
