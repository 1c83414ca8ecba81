from tests.net.conftest import long_turns, transport

__all__ = ["long_turns", "transport"]
