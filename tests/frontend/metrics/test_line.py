import pytest

from msx_frontend.metrics.line import line_ends, metric_line, parse_metric
from msx_protocol import MetricSample


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        (
            "Size.Megabytes:7.5|#ModelName:m,Level:Model|#type:GAUGE|#hostname:h,1795198064,id-1,id-2",
            MetricSample(
                "Size",
                "gauge",
                "Megabytes",
                7.5,
                [("ModelName", "m"), ("Level", "Model"), ("Hostname", "h")],
                "id-1,id-2",
            ),
        ),
        (
            " Calls.Count:-1e-3|#|#hostname:h,1",
            MetricSample("Calls", "counter", "Count", -0.001, [("Hostname", "h")]),
        ),
        (
            "T.ms:1|#odd,a:b:c,x:y|#type:HISTOGRAM|#hostname:h,1",
            MetricSample("T", "histogram", "ms", 1.0, [("x", "y"), ("Hostname", "h")]),
        ),
    ],
)
def test_a_line_is_read(line: str, sample: MetricSample) -> None:
    assert parse_metric(line) == sample


@pytest.mark.parametrize(
    "line",
    ["", "Size:1", "Size.MB:x|#|#hostname:h,1", "Size.MB:1,5|#|#hostname:h,1", "A.b:1|#|#type:SUMMARY|#hostname:h,1"],
)
def test_what_is_not_a_metric(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - float's own
        parse_metric(line)


def test_a_line_is_written() -> None:
    pairs = [("ModelName", "m"), ("Level", "Model")]
    assert metric_line(line_ends("P", "ms", pairs, "vm"), 0.65, "id", 1795198064.7) == (
        "P.ms:0.65|#ModelName:m,Level:Model|#hostname:vm,requestID:id,timestamp:1795198064"
    )
    assert metric_line(line_ends("R", "Count", [], "vm"), 1, "", 5) == "R.Count:1.0|#|#hostname:vm,timestamp:5"
