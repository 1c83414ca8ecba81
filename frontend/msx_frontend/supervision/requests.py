"""Answers to what a frontend asks of its supervisor."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.wire import VERSION, Message, close_all


class Reply(NamedTuple):
    """`descriptors` stay the supervisor's own."""

    message: Message
    descriptors: list[int]


class SupervisorRequests:
    """One method for each request, by its name. Each takes milliseconds, and is answered before the next one."""

    def __init__(self, children: Children, sockets: KeptSockets, started: Callable[[], None]) -> None:
        """`started` is called when the frontend answers its clients."""
        self._children, self._sockets, self._started = children, sockets, started

    def answer(self, message: Message, descriptors: list[int]) -> Reply:
        """An error is answered with its number and text; it is the frontend's to say what follows."""
        try:
            method: Callable[[Message, list[int]], Any] = getattr(self, f"on_{message.get('ask')}", self._unknown)
            reply = method(message, descriptors)
        except OSError as error:
            reply = {"errno": error.errno or 0, "error": error.strerror or str(error)}
        message, own = reply if isinstance(reply, tuple) else (reply or {}, [])
        return Reply(message, own)

    def on_hello(self, message: Message, descriptors: list[int]) -> Message:
        if message["version"] != VERSION:
            raise OSError(f"the supervisor speaks version {VERSION}, and the frontend version {message['version']}")
        return {"pid": os.getpid(), "kept": self._children.notes()}

    def on_start(self, message: Message, descriptors: list[int]) -> Message:
        return {"pid": self._children.start(message, descriptors)}

    def on_reap(self, message: Message, descriptors: list[int]) -> Message:
        return {"code": self._children.reap(message["pid"])}

    def on_adopt(self, message: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """The descriptors are the worker's new sockets; those of its output are answered."""
        try:
            child = self._children[message["pid"]]
            child.adopt(descriptors)
        finally:
            close_all(descriptors)
        return {}, list(child.outputs)

    def on_keep(self, message: Message, descriptors: list[int]) -> None:
        self._sockets.keep(message["name"], descriptors)

    def on_find(self, message: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        return {}, self._sockets.find(message["name"])

    def on_drop(self, message: Message, descriptors: list[int]) -> None:
        self._sockets.drop(message["name"])

    def on_started(self, message: Message, descriptors: list[int]) -> None:
        self._sockets.frontend_started()
        self._started()

    def _unknown(self, message: Message, descriptors: list[int]) -> Message:
        close_all(descriptors)
        raise OSError(f"the supervisor does not know the request {message.get('ask')!r}")
