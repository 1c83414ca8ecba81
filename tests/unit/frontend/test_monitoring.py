from msx_frontend.logs.access_log import AccessLog
from msx_frontend.metrics import ServerMetrics
from msx_frontend.monitoring import CountedReplies
from tests.unit.frontend.jobs import run
from tests.unit.frontend.logs.test_access_log import Call
from tests.unit.frontend.metrics.test_server import exposed


def test_every_line_of_the_access_log_is_a_reply_but_for_probes() -> None:
    metrics, texts = ServerMetrics(), list[str]()

    async def test() -> None:
        log = AccessLog(texts.append, as_json=False)
        replies = CountedReplies(log, metrics)
        for target, status in (("/predictions/m", 200), ("/ping", 500), ("/readyz", 503), ("/livez", 200)):
            replies.write(Call(target=target), status)
        log.flush()

    run(test())
    seen = exposed(metrics)
    assert (seen["Requests2XX", "Level=Host"], seen["Requests5XX", "Level=Host"]) == (1, 1)
    assert "".join(texts).count("\n") == 4
