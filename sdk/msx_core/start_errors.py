"""The errors that keep a server from starting."""


class StartError(Exception):
    """The base class. The message is one sentence for the user."""
