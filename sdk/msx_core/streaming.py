"""TorchServe's function for intermediate results, an alternative to `yield`."""

from collections.abc import Mapping, Sequence
from typing import Any

from msx_core.context import Context


def send_intermediate_predict_response(
    ret_list: Sequence[Any],
    req_id_map: Mapping[int, str],
    message: str,
    code: int,
    context: Context,
) -> None:
    """Send one chunk per request now; the handler's return is the last one.

    `ret_list[i]` belongs to request `i` of `req_id_map`; None sends nothing. `code` is the HTTP status and counts
    with the first chunk only. What is meant for requests of another batch, such as one that has ended, is dropped.
    In a parallel group only rank 0's chunks reach the client.
    The signature is that of `ts.handler_utils.utils.send_intermediate_predict_response`.
    """
    current = context.request_ids
    values: list[Any] = [None] * len(current)
    for idx, value in zip(sorted(req_id_map), ret_list, strict=True):
        if current.get(idx) != req_id_map[idx]:
            continue
        values[idx] = value
        if code != 200 and context.get_response_status(idx)[0] == 200:
            context.set_response_status(code, message, idx)
    context.send(values)
