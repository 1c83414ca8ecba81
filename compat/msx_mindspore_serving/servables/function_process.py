"""`python -m msx_mindspore_serving.servables.function_process` runs functions of a servable for a worker.

It exits with the worker. Its arguments are the descriptor of its socket, the worker's process id, the servable's
folder and its name.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from msx_core.log_records import log_to_stderr
from msx_core.orphan import die_with_parent
from msx_core.servables import ModelDeclaration, Servable, load_servable
from msx_core.servables.model import ModelCallError
from msx_mindspore_serving.servables.frames import receive, send
from msx_mindspore_serving.servables.functions import Instances, Outcome, StageFunction
from msx_mindspore_serving.servables.values import IllegalResult, from_function, to_function

PATH, READY, FAILED, RUN, DONE, CALL, CALLED, REFUSED = "path", "ready", "failed", "run", "done", "call", "called", "no"
"""The first item of a message."""


class FunctionProcess:
    """One socket, one servable."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._calling = threading.Lock()  # a function may call models from several threads

    def serve(self, folder: Path, name: str) -> None:
        """Until the worker is gone."""
        path = receive(self._sock)
        if path is None:
            return
        sys.path[:] = path[1]
        try:
            servable = load_servable(folder, name)
        except Exception as error:
            send(self._sock, [FAILED, str(error)])
            return
        for model in servable.models.values():
            model.caller = self._call
        send(self._sock, [READY])
        while message := receive(self._sock):
            _, function, method, instances = message
            send(self._sock, [DONE, [_sent(one) for one in self._run(servable, function, method, instances)]])

    def _run(self, servable: Servable, name: str, method: str, instances: Instances) -> list[Outcome]:
        use = servable.functions[name]
        function = StageFunction(name, use.function, use.batched, use.outputs_count, method)
        return function.run([[to_function(value) for value in instance] for instance in instances])

    def _call(self, declaration: ModelDeclaration, subgraph: int, instances: Instances) -> tuple[tuple[Any, ...], ...]:
        """`Model.call`: the worker has the model."""
        try:
            values = [[from_function(value) for value in instance] for instance in instances]
        except IllegalResult as error:
            raise ModelCallError(str(error)) from None
        with self._calling:
            send(self._sock, [CALL, declaration.key, subgraph, values])
            answer = receive(self._sock)
        if answer is None:
            os._exit(1)
        if answer[0] == REFUSED:
            raise ModelCallError(answer[1])
        return tuple(tuple(to_function(value) for value in outputs) for outputs in answer[1])


def _sent(outcome: Outcome) -> list[Any] | str:
    return outcome if isinstance(outcome, list) else outcome.text


def main() -> None:
    descriptor, parent, folder, name = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker says when it ends
    log_to_stderr()
    sock = socket.socket(fileno=int(descriptor))
    sock.set_inheritable(False)
    sys.dont_write_bytecode = True
    with contextlib.suppress(BrokenPipeError):
        FunctionProcess(sock).serve(Path(folder), name)
    sys.stdout.flush()
    os._exit(0)  # whatever threads the servable has started


if __name__ == "__main__":
    main()
