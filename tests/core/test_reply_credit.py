from __future__ import annotations

import asyncio
import threading

import pytest

from msx_core.reply_credit import UNLIMITED, ReplyCredit, wait_for_any

WATCHDOG = 120.0


def spent_credit() -> ReplyCredit:
    return credit_of(10, sent=10)


def credit_of(limit: int, sent: int = 0) -> ReplyCredit:
    credit = ReplyCredit()
    credit.credit, credit.sent = limit, sent
    return credit


def in_thread(*credits: ReplyCredit) -> threading.Thread:
    """Waits for any of them; returns when it watches."""
    thread = threading.Thread(target=wait_for_any, args=(credits,), daemon=True)
    thread.start()
    while not all(credit._watchers for credit in credits):
        pass
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(WATCHDOG)
    return not thread.is_alive()


@pytest.mark.parametrize(("sent", "spent"), [(0, False), (9, False), (10, True), (25, True)])
def test_a_chunk_is_sent_whole_once_any_credit_is_left(sent: int, spent: bool) -> None:
    assert credit_of(10, sent).spent is spent
    assert not ReplyCredit().spent


def test_a_limit_is_never_lowered() -> None:
    credit = credit_of(10)
    for limit, reached in ((20, 20), (15, 20)):
        credit.grant(limit)
        assert credit.credit == reached
    credit.lift()
    assert credit.credit == UNLIMITED


def test_a_thread_waits_until_one_of_several_clients_has_taken_something() -> None:
    slow, faster = spent_credit(), spent_credit()
    thread = in_thread(slow, faster)
    slow.grant(10)
    assert thread.is_alive()
    faster.grant(11)
    assert ended(thread)
    assert (slow._watchers, faster._watchers) == ((), ())


def test_nothing_waits_for_a_client_that_has_left() -> None:
    credit = spent_credit()
    thread = in_thread(credit)
    credit.lift()
    assert ended(thread)


def test_nobody_waits_without_need() -> None:
    wait_for_any([credit_of(1), spent_credit()])
    asyncio.run(credit_of(1).granted())


def test_a_task_waits_while_others_go_on() -> None:
    async def main() -> None:
        credit = spent_credit()
        waiting = asyncio.create_task(credit.granted())
        await asyncio.sleep(0)
        for limit in (10, 11):  # the first changes nothing
            assert not waiting.done()
            await asyncio.to_thread(credit.grant, limit)
        await asyncio.wait_for(waiting, WATCHDOG)
        assert credit._watchers == ()

    asyncio.run(main())


def test_a_task_that_is_cancelled_watches_no_longer() -> None:
    async def main() -> None:
        credit = spent_credit()
        waiting = asyncio.create_task(credit.granted())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert credit._watchers == ()

    asyncio.run(main())


def test_a_grant_after_the_end_of_the_loop_is_harmless() -> None:
    credit, loop = spent_credit(), asyncio.new_event_loop()
    waiting = loop.create_task(credit.granted())
    loop.call_soon(loop.stop)
    loop.run_forever()
    (wake,) = credit._watchers
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(waiting)
    loop.close()
    wake()
