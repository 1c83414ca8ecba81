"""What may keep a server from starting."""


class StartError(Exception):
    """Base of all of them; the message is one sentence for the user."""
