"""Clients that ask again and again while a test does something to the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.server import RunningServer, client_of, wait_until

Answer = tuple[int, str]


class Traffic:
    """Every answer as (status, body), a list for each client in its order."""

    def __init__(self, clients: int) -> None:
        self.clients: list[list[Answer]] = [[] for _ in range(clients)]
        self._stop = threading.Event()

    def run(self, server: RunningServer, model: str, answers: list[Answer]) -> None:
        with client_of(server.info["inference"], None) as client:
            while not self._stop.is_set():
                reply = client.post(f"/predictions/{model}", content=b"x")
                answers.append((reply.status_code, reply.text))

    def stop(self) -> None:
        self._stop.set()

    def wait_for_more(self, number: int = 5) -> None:
        """Wait for more answers of every client: all but the first were asked for after this call."""
        targets = [len(answers) + number for answers in self.clients]
        wait_until(
            lambda: all(len(answers) >= target for answers, target in zip(self.clients, targets, strict=True)),
            f"every client has {number} more answers",
        )

    @property
    def failures(self) -> list[Answer]:
        return [answer for answers in self.clients for answer in answers if answer[0] != 200]

    @property
    def first(self) -> set[Answer]:
        return {answers[0] for answers in self.clients}

    @property
    def last(self) -> set[Answer]:
        return {answers[-1] for answers in self.clients}


@contextmanager
def traffic(server: RunningServer, model: str, clients: int = 3) -> Iterator[Traffic]:
    running = Traffic(clients)
    threads = [threading.Thread(target=running.run, args=(server, model, answers)) for answers in running.clients]
    for thread in threads:
        thread.start()
    try:
        running.wait_for_more()
        yield running
        running.wait_for_more()
    finally:
        running.stop()
        for thread in threads:
            thread.join()
