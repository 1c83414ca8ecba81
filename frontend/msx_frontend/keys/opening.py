"""The keys of a server, from its configuration and environment."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import NamedTuple

from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.keys.key import Key
from msx_frontend.keys.operator_keys import VARIABLE, OperatorKeys
from msx_frontend.keys.tokens import Tokens
from msx_net.model_names import ModelNames


class ServerKeys(NamedTuple):
    """`tokens` is None when authorization is off."""

    tokens: Tokens | None
    given: OperatorKeys | None

    @property
    def named(self) -> bool:
        """Some keys have names, or may have names later."""
        return self.given is not None and self.given.any

    def watch(self) -> None:
        if self.given is not None:
            self.given.watch()

    async def leave(self) -> None:
        """Let another server have their file; they stay as they are."""
        if self.given is not None:
            await self.given.close()
        if self.tokens is not None:
            self.tokens.leave()

    async def close(self) -> None:
        """May be called again."""
        if self.given is not None:
            await self.given.close()
        if self.tokens is not None:
            self.tokens.close()


def open_keys(
    config: ServerConfig,
    made: Path,
    env: MutableMapping[str, str],
    names: ModelNames | None = None,
    *,
    follows: bool = False,
) -> ServerKeys:
    """Generated keys are written to `made`; MSX_API_KEY is removed from `env`; `names` has the aliases of models;
    `follows`: see GeneratedKeys. Raises StartError."""
    if config.disable_token_authorization:
        _check_unset(env)
        return ServerKeys(tokens=None, given=None)
    tokens = Tokens(made, config.token_expiration_min, keep=config.keep_tokens, follows=follows, names=names)
    try:
        return ServerKeys(tokens=tokens, given=OperatorKeys(config.api_keys_file, env, tokens.give))
    except BaseException:
        tokens.close()
        raise


def count_keys(config: ServerConfig, env: Mapping[str, str]) -> int:
    """The number of the operator's keys, which are read as a start reads them. Raises StartError."""
    own, found = dict(env), list[Key]()
    if config.disable_token_authorization:
        _check_unset(own)
    else:
        OperatorKeys(config.api_keys_file, own, found.extend)
    return len(found)


def _check_unset(env: MutableMapping[str, str]) -> None:
    if env.pop(VARIABLE, "").strip():
        raise ServerConfigError(
            f"{VARIABLE}: is set, but with disable_token_authorization=true (--disable-token-auth) no request "
            "needs a key; remove one of the two"
        )
