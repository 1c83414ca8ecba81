from __future__ import annotations

import time
from typing import Any

from msx_backend.open_requests import OpenRequests
from msx_protocol import FieldHead, Predict, RequestHead, encode_headers
from msx_sdk.request import InferenceRequest


def take(jobs: OpenRequests, *numbers: int) -> list[InferenceRequest]:
    heads = [RequestHead(number, f"id-{number}", encode_headers([]), [], None) for number in numbers]
    return jobs.take(Predict(heads), bytearray())


def test_fields_are_cut_out_of_the_body() -> None:
    heads = [
        RequestHead(
            1, "a", encode_headers([("X-A", "1")]), [FieldHead("x", "text/plain", 3), FieldHead("y", None, 0)], None
        ),
        RequestHead(2, "b", encode_headers([]), [FieldHead("body", "application/json", 4)], 60.0),
    ]
    before = time.monotonic()
    first, second = OpenRequests().take(Predict(heads), bytearray(b"abc[1]\n"))
    assert first.data() == {"x": "abc", "y": bytearray()}
    assert first.headers["x-a"] == "1"
    assert (first.id, first.number, first.deadline) == ("a", 1, None)
    assert second.data() == {"body": [1]}
    assert second.deadline is not None
    assert second.deadline >= before + 60.0


def test_many_fields() -> None:
    fields = [FieldHead(f"f{n}", "text/plain", len(str(n))) for n in range(1000)]
    body = bytearray("".join(map(str, range(1000))), "ascii")
    (request,) = OpenRequests().take(Predict([RequestHead(1, "a", encode_headers([]), fields, None)]), body)
    assert request.data() == {f"f{n}": str(n) for n in range(1000)}


def test_a_cancel_finds_its_request_once() -> None:
    jobs, told = OpenRequests(), list[int]()
    jobs.tell_cancels(told.append)
    one, two = take(jobs, 1, 2)
    jobs.cancel([2])
    jobs.cancel([2])
    assert (one.cancelled, two.cancelled) == (False, True)
    assert told == [2]


def test_a_cancel_that_comes_first_is_kept_in_mind() -> None:
    jobs, told = OpenRequests(), list[int]()
    jobs.tell_cancels(told.append)
    jobs.cancel([2, 9])
    one, two = take(jobs, 1, 2)
    assert (one.cancelled, two.cancelled) == (False, True)
    assert told == []
    assert take(jobs, 9)[0].cancelled


def test_a_cancel_that_comes_too_late_is_ignored() -> None:
    jobs = OpenRequests()
    jobs.release(take(jobs, 1, 2))
    jobs.cancel([1, 2])
    assert not take(jobs, 3)[0].cancelled
    assert jobs_state(jobs) == ([3], set())


def test_early_cancels_of_requests_that_never_come_are_forgotten() -> None:
    jobs = OpenRequests()
    jobs.cancel([5, 7])
    take(jobs, 6)
    assert jobs_state(jobs) == ([6], {7})


def test_a_released_request_holds_no_payload() -> None:
    jobs = OpenRequests()
    requests = jobs.take(
        Predict([RequestHead(1, "a", encode_headers([]), [FieldHead("body", None, 3)], None)]), bytearray(b"abc")
    )
    jobs.release(requests)
    assert requests[0].parts == {}
    assert jobs_state(jobs) == ([], set())


def jobs_state(jobs: OpenRequests) -> Any:
    return list(jobs._held), jobs._cancelled_early


def test_requests_of_a_crashed_server_are_cancelled_also_those_that_come_still() -> None:
    jobs = OpenRequests()
    (held,) = take(jobs, 1)
    jobs.orphan()
    (late,) = take(jobs, 2)
    assert (held.cancelled, late.cancelled) == (True, True)
    jobs.adopt()
    (next_one,) = take(jobs, 3)
    assert not next_one.cancelled
    assert jobs.newest == 3
