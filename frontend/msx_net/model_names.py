"""Names of models, as far as connections need them: for paths, and for keys that are good for some models."""

from collections.abc import Mapping


class Epoch:
    """Time in which names, paths and operations of models stay the same, and so does what a head means."""

    __slots__ = ("is_current",)

    def __init__(self) -> None:
        self.is_current = True


class ModelNames:
    """One object for a whole server, which the registry keeps."""

    __slots__ = ("aliases", "epoch")

    def __init__(self) -> None:
        self.aliases: Mapping[str, str] = {}
        """Names of models by their aliases."""
        self.epoch = Epoch()

    def changed(self) -> None:
        """End the epoch: a connection looks up anew what it knew in it."""
        self.epoch.is_current = False
        self.epoch = Epoch()
