"""The table of operators."""

from __future__ import annotations

from benchmarks.llm.operators import OTHERS, OUTSIDE, StepTimes, table


def test_operators_by_their_share_of_a_step() -> None:
    one = StepTimes("1 text", 0.1, {"MatMul": (10, 0.08), "Add": (4, 0.01), "Cast": (1, 0.0001)})
    two = StepTimes("2 texts", 0.2, {"MatMul": (10, 0.1), "Softmax": (2, 0.05)})
    made = table("a model", [one, two])
    assert made.columns == ("operator", "1 text", "2 texts")
    assert [tuple(row) for row in made.rows] == [
        ("MatMul", "80.0 ms, 80% (10 ×)", "100 ms, 50% (10 ×)"),
        ("Softmax", "0 ms, 0%", "50.0 ms, 25% (2 ×)"),
        ("Add", "10.0 ms, 10% (4 ×)", "0 ms, 0%"),
        (OTHERS, "0.100 ms, 0% (1 ×)", "0 ms, 0%"),
        (OUTSIDE, "9.90 ms, 10%", "50.0 ms, 25%"),
        ("a step", "100 ms", "200 ms"),
    ]
