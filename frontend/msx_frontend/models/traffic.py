"""How the requests that name no version are divided over the versions of a model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from msx_core.service_errors import BadRequest

MOST_VERSIONS = 16
HEADER_LENGTH = 100

Headers = Sequence[tuple[str, str]]


class TrafficRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Traffic of a model, as an operator divides it. `weights`: by version, in any unit. Requests whose header
    `sticky_header` has the same value go to the same version, on every replica of the server; "": none is looked at."""

    weights: dict[str, float]
    sticky_header: str = ""

    def without(self, version: str) -> TrafficRule | None:
        """None where none of the others has a weight."""
        weights = {name: weight for name, weight in self.weights.items() if name != version}
        return msgspec.structs.replace(self, weights=weights) if any(weights.values()) else None

    def share(self, version: str) -> float:
        """Share from 0 to 1."""
        return self.weights.get(version, 0.0) / sum(self.weights.values())


def traffic_rule(value: object) -> TrafficRule:
    """Parse a request's body: versions and weights, or `{"weights": …, "stickyHeader": …}`. Raises BadRequest."""
    if isinstance(value, dict) and not isinstance(value.get("weights"), dict):
        value = {"weights": value}
    try:
        rule = msgspec.convert(value, TrafficRule)
    except msgspec.ValidationError as error:
        raise BadRequest(
            f'The traffic must be versions and weights, such as {{"1.0": 90, "2.0": 10}}, or {{"weights": …, '
            f'"stickyHeader": …}}: {error}.'
        ) from None
    _check(rule)
    return rule


def _check(rule: TrafficRule) -> None:
    weights = rule.weights
    wrong = next((name for name, weight in weights.items() if not 0 <= weight <= 1e9), None)
    if wrong is not None:
        raise BadRequest(f"The weight of version {wrong[:80]} must be a number from 0 to 1000000000.")
    if not any(weights.values()):
        raise BadRequest("At least one version must have a weight above 0: DELETE ends the division of traffic.")
    if len(weights) > MOST_VERSIONS:
        raise BadRequest(f"Traffic can be divided over {MOST_VERSIONS} versions at most, not {len(weights)}.")
    if len(rule.sticky_header) > HEADER_LENGTH:
        raise BadRequest(f"stickyHeader must be the name of a header, of {HEADER_LENGTH} characters at most.")


class TrafficSplit:
    """Chooses versions by the weights of its rule, in turn: the counts of any 100 requests are those of the weights.

    `diverted` is called with a version that would have got the request, if it could answer.
    """

    def __init__(self, rule: TrafficRule, diverted: Callable[[str], None] = lambda version: None) -> None:
        self.rule = rule
        self._diverted = diverted
        self._header = rule.sticky_header.lower()
        self._weights = {version: weight for version, weight in rule.weights.items() if weight}
        self._due = dict.fromkeys(self._weights, 0.0)

    def choose(self, headers: Headers, answers: Callable[[str], bool]) -> str:
        """`answers`: whether a version can answer now. One that cannot is chosen only where none can."""
        value = self._value(headers)
        wanted = self._by_turn(self._weights) if value is None else self._by_value(value, self._weights)
        if answers(wanted):
            return wanted
        others = {version: weight for version, weight in self._weights.items() if answers(version)}
        if not others:
            return wanted
        self._diverted(wanted)
        return self._by_value(value, others) if value is not None else self._by_turn(others)

    def _value(self, headers: Headers) -> str | None:
        if not self._header:
            return None
        return next((value for name, value in headers if name.lower() == self._header), None)

    def _by_turn(self, weights: Collection[str]) -> str:
        """nginx's smooth weighted round-robin: the one that is due the most."""
        total = 0.0
        for version in weights:
            weight = self._weights[version]
            self._due[version] += weight
            total += weight
        chosen = max(weights, key=self._due.__getitem__)
        self._due[chosen] -= total
        return chosen

    def _by_value(self, value: str, weights: dict[str, float]) -> str:
        """Weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): a change of weights moves as few as it can,
        and servers that know nothing of each other choose alike."""
        return max(weights, key=lambda version: -weights[version] / math.log(_uniform(value, version)))


def _uniform(value: str, version: str) -> float:
    """A number between 0 and 1, without either."""
    digest = hashlib.blake2b(f"{version}\0{value}".encode(errors="replace"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**64
