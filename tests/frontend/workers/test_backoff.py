import pytest

from msx_frontend.workers.backoff import Backoff


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pauses(backoff: Backoff, clock: Clock, count: int) -> list[float | None]:
    """Pauses of a group that never gets ready."""
    found: list[float | None] = []
    for _ in range(count):
        found.append(backoff.failed())
        clock.now += found[-1] or 0
    return found


def test_the_pauses_grow(clock: Clock) -> None:
    assert pauses(Backoff(10_000, clock), clock, 9) == [0, 1, 1, 2, 3, 5, 8, 13, 21]


def test_the_last_try_is_at_the_limit(clock: Clock) -> None:
    assert pauses(Backoff(10, clock), clock, 8) == [0, 1, 1, 2, 3, 3, None, None]


def test_the_longest_pause_repeats(clock: Clock) -> None:
    assert pauses(Backoff(1e6, clock), clock, 20)[-3:] == [1597, 1597, 1597]


def test_no_restart_at_all(clock: Clock) -> None:
    assert Backoff(0, clock).failed() is None


def test_a_good_reply_resets(clock: Clock) -> None:
    backoff = Backoff(10, clock)
    pauses(backoff, clock, 4)
    clock.now += 100
    backoff.reset()
    assert pauses(backoff, clock, 3) == [0, 1, 1]


@pytest.mark.parametrize(("ready_for", "pause"), [(59.9, 3), (60.0, 0)])
def test_a_minute_of_being_ready_resets(clock: Clock, ready_for: float, pause: int) -> None:
    backoff = Backoff(1000, clock)
    pauses(backoff, clock, 4)
    backoff.ready()
    clock.now += ready_for
    assert backoff.failed() == pause


def test_being_ready_counts_for_one_life_only(clock: Clock) -> None:
    backoff = Backoff(1000, clock)
    backoff.ready()
    clock.now += 60
    assert pauses(backoff, clock, 2) == [0, 1]
    clock.now += 60
    assert backoff.failed() == 1


def test_given_up_stays_given_up_until_a_reset(clock: Clock) -> None:
    backoff = Backoff(1, clock)
    assert pauses(backoff, clock, 4) == [0, 1, None, None]
    backoff.reset()
    assert backoff.failed() == 0


def test_a_pause_does_not_count(clock: Clock) -> None:
    backoff = Backoff(10, clock)
    backoff.resume()
    assert backoff.failed() == 0
    backoff.pause()
    clock.now += 1000
    backoff.resume()
    backoff.resume()
    clock.now += 9
    assert backoff.failed() == 1
    clock.now += 1
    assert backoff.failed() is None
