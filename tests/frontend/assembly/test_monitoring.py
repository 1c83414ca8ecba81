from pathlib import Path

import pytest

from msx_frontend.assembly.monitoring import CountedCalls, CountedReplies, Monitoring
from msx_frontend.config import ServerConfig
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.output import LogOutput
from msx_frontend.logs.rotating import RotatingFile
from msx_frontend.metrics import ServerMetrics
from tests.frontend.logs.test_access_log import Call
from tests.frontend.metrics.test_server import exposed
from tests.loops import run


def test_every_line_of_the_access_log_is_a_reply_but_for_probes() -> None:
    metrics, texts = ServerMetrics(), list[str]()

    async def test() -> None:
        log = AccessLog(texts.append)
        replies = CountedReplies(log, metrics, by_key=True)
        for target, status in (("/predictions/m", 200), ("/ping", 500), ("/readyz", 503), ("/livez", 200)):
            replies.write(Call(target=target), status)
        named = Call(key_name="team-a")
        replies.write(named, 429)
        asked = (named.client, named.key_name, named.method, named.target, named.protocol, 200)
        replies.write_entry((asked, "i", 0.0, 1.0))
        replies.write_entry(((asked[0], "", *asked[2:]), "i", 0.0, 1.0))
        CountedCalls(log, metrics).write(named, 8)
        log.flush()

    run(test())
    seen = exposed(metrics)
    assert (seen["Requests2XX", "Level=Host"], seen["Requests5XX", "Level=Host"]) == (3, 1)
    keys = {labels: value for (name, labels), value in seen.items() if name == "msx_key_requests_total"}
    assert keys == {
        "code=429,key=team-a,protocol=http": 1,
        "code=200,key=team-a,protocol=http": 1,
        "code=8,key=team-a,protocol=grpc": 1,
    }
    assert "".join(texts).count("\n") == 8


@pytest.mark.parametrize("mode", [None, "prometheus", "log"])
def test_the_metric_logs_are_there_beside_torchserves_log_files(tmp_path: Path, mode: str | None) -> None:
    def made(access_file: RotatingFile | None) -> list[str]:
        folder = tmp_path / ("own" if access_file is None else "usual")
        output = LogOutput(lambda line: None, access_file=access_file)
        Monitoring(ServerConfig(metrics_mode=mode), output, {"METRICS_LOCATION": str(folder)}, None)  # type: ignore[arg-type]
        return sorted(path.name for path in folder.glob("*"))

    both = ["model_metrics.log", "ts_metrics.log"]
    assert made(RotatingFile(tmp_path / "access_log.log")) == both
    assert made(None) == (both if mode == "log" else []), "with a logging configuration of the user's"
