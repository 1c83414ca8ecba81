"""All calls."""

from __future__ import annotations

from tests.emulated_ascend import attention_refusals, calls, cell_refusals, expert_calls, quantised_calls

ACCEPTED = (*calls.ACCEPTED, *expert_calls.ACCEPTED, *quantised_calls.ACCEPTED)
REFUSED = (*attention_refusals.REFUSED, *cell_refusals.REFUSED, *expert_calls.REFUSED, *quantised_calls.REFUSED)
