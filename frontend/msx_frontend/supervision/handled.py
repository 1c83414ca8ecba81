"""Signals that a supervisor handles. They are blocked while it is not there yet, and come to it when it is.

Others do what they do to a server without one: SIGUSR1, say, ends it.
"""

import signal

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""They stop a server when its running requests are answered; a second one does not wait for them."""
HANDED_ON = signal.SIGRTMIN
"""Signal by which a supervisor, or the small process 1 without one, hands those on: `killall` sends them to the
frontend as well, which is no second one."""
ENDING = (*STOPPING, signal.SIGQUIT, signal.SIGHUP)
"""They are handed on to frontends, after which none follows: a terminal that is closed ends its server."""
IGNORABLE = (signal.SIGHUP, signal.SIGTSTP)
"""They stay ignored where they are: by `nohup`, say."""
HANDLED = (*ENDING, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCHLD)
