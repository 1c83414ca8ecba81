from tests.net.conftest import long_turns

__all__ = ["long_turns"]
