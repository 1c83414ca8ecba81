"""Keys of a configuration that the server does not have. TorchServe ignores them, and so does this server, unless
`unknown_keys=refuse`: a file of a newer server must not keep an older one from starting."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msx_core.values import near_miss
from msx_frontend.config.meant import meant
from msx_frontend.config.server_config import ServerConfigError

KEY = "unknown_keys"
REFUSE = "refuse"
ENVIRONMENT = "environment"
MOST_SHOWN = 10
MOST_LOOKED_UP = 100
MOST_CHARACTERS = 80


class UnknownKey(NamedTuple):
    """`origin` is the file, or `ENVIRONMENT`; `remedy` is a question or a sentence about the key that is meant, or
    ""."""

    origin: str
    key: str
    remedy: str

    @property
    def notice(self) -> str:
        return f"{self._place} is not a known key and is ignored{self._end}"

    @property
    def refusal(self) -> str:
        return f"{self._place} is not a known key{self._end}"

    @property
    def _place(self) -> str:
        return f"{self.origin}: {self.key}:"

    @property
    def _end(self) -> str:
        return f"; {self.remedy}" if self.remedy else ""


def unknown_key(origin: str, key: str, value: str, *, look: bool) -> UnknownKey:
    """Describe a key that is not known. With `look`, a near key is looked for, which takes a millisecond."""
    return UnknownKey(origin, key[:MOST_CHARACTERS], meant(key, value) if look and len(key) <= MOST_CHARACTERS else "")


def unknown_variables(env: Mapping[str, str], known: Collection[str]) -> Iterator[UnknownKey]:
    """Yield variables `TS_…` that are near to a known one; any other may belong to somebody else."""
    for name in sorted(env):
        if name.startswith("TS_") and name not in known and (found := near_miss(name, known)):
            yield UnknownKey(ENVIRONMENT, name, f"did you mean {found}?")


def check_unknown(found: Sequence[UnknownKey], policy: str) -> None:
    """Raises ServerConfigError where they are refused."""
    if policy != REFUSE or not found:
        return
    more = f", and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    raise ServerConfigError(
        f"{KEY}={REFUSE}: correct or remove these keys, or leave out {KEY}, so that they are warnings: "
        f"{', '.join(one.refusal for one in found[:MOST_SHOWN])}{more}"
    )
