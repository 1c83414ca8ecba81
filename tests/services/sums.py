"""Stateful: answers each request of a sequence with the sum of its numbers so far, the last one with the total."""

SUMS = {}


def handle(data, context):
    return [answer(row, idx, context) for idx, row in enumerate(data)]


def answer(row, idx, context):
    sequence = context.get_sequence_id(idx)
    SUMS[sequence] = SUMS.get(sequence, 0) + int(
        bytes(row["body"]) if isinstance(row["body"], bytearray) else row["body"]
    )
    if not context.get_request_header(idx, context.header_key_sequence_end):
        return {"sum": SUMS[sequence]}
    return {"total": SUMS.pop(sequence)}
