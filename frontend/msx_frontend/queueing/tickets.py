"""Job tickets (`useJobTicket`): a request is taken only while a worker is free for it."""

from collections.abc import Collection, Sequence

from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.instances import InstanceRequest


def free_tickets(groups: Sequence[BatchTarget], waiting: int, requests: Collection[InstanceRequest]) -> int:
    """`waiting` requests have no worker yet; `requests` with instances are not answered. Each of these has one ticket
    until its last instance is answered, however many workers are busy with it, or none."""
    if not requests:
        return sum(group.room() if group.is_async else int(group.idle) for group in groups) - waiting
    free = sum(_but_for_instances(group, requests) for group in groups)
    jobs = waiting - sum(1 for request in requests if request.waiting)
    return free - jobs - len(requests)


def _but_for_instances(group: BatchTarget, requests: Collection[InstanceRequest]) -> int:
    """How many jobs of their own the group would take, if it had no instances."""
    instances = sum(job.group is group for request in requests for job in request.running)
    return group.room() + instances if group.is_async else int(group.busy == instances)
