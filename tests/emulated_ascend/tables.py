"""All calls."""

from __future__ import annotations

from tests.emulated_ascend import calls, expert_calls, quantised_calls, refusals

ACCEPTED = (*calls.ACCEPTED, *expert_calls.ACCEPTED, *quantised_calls.ACCEPTED)
REFUSED = (*refusals.REFUSED, *expert_calls.REFUSED, *quantised_calls.REFUSED)
