"""How many workers a load needs."""

from math import ceil, floor, sqrt


def queue_time(rate: float, capacity: float, workers: int) -> float:
    """The mean time in the queue, in seconds, where `rate` requests come per second at random and each of the workers
    answers `capacity` per second: Sakasegawa's approximation of M/M/c. Infinity where they come faster than that."""
    busy = rate / (capacity * workers)
    if busy >= 1:
        return float("inf")
    exponent = sqrt(2 * (workers + 1)) - 1
    return float(busy**exponent) / (workers * (1 - busy) * capacity)


def enough_for_queue_time(rate: float, capacity: float, target: float, most: int) -> int:
    """The fewest workers whose queue time is at most `target` seconds: at least 1, and `most` at most."""
    first = min(floor(min(rate / capacity, most)) + 1, most)
    found = (count for count in range(max(first, 1), most) if queue_time(rate, capacity, count) <= target)
    return next(found, most)


def enough_for_in_flight(demand: float, target: float, most: int) -> int:
    """The fewest workers that have at most `target` of `demand` requests each: at least 1, and `most` at most."""
    return max(min(ceil(min(demand / target, most) - 1e-9), most), 1)
