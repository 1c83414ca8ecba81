"""The error of this package."""


class GgufError(Exception):
    """The file cannot be read; the message says what is wrong with it, without its name."""
