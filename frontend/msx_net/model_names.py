"""Aliases of models, as far as connections need them: for paths, and for keys that are good for some models."""

from collections.abc import Mapping


class ModelNames:
    """One object for a whole server, which the registry keeps."""

    __slots__ = ("aliases",)

    def __init__(self) -> None:
        self.aliases: Mapping[str, str] = {}
        """Names of models by their aliases. Another mapping after each change, so that a connection sees by identity
        whether what it has checked is still so."""
