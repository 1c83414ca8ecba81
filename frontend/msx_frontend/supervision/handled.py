"""Signals that a supervisor handles. They are blocked while it is not there yet, and come to it when it is."""

import signal

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HANDED_ON = (*ENDING, signal.SIGHUP, signal.SIGUSR1)
HANDLED = (*HANDED_ON, signal.SIGUSR2, signal.SIGCHLD)
