"""The signals that end a start script: its main thread heeds them."""

import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def leave_to_main() -> None:
    """The calling thread, and those that it starts, take none: a signal that one of them takes does not wake the main
    thread. The kernel prefers the main thread, but not where the process was stopped when the signal came."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
