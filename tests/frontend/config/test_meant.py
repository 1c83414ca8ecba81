from __future__ import annotations

import pytest

from msx_frontend.config.meant import _ELSEWHERE, meant
from msx_frontend.config.server_config import ServerConfig

CASES = [
    ("job_queue_sise", "", "did you mean job_queue_size?"),
    ("jobQueueSize", "", "did you mean job_queue_size?"),
    ("model-store", "", "did you mean model_store?"),
    ("number_of_gpus", "", "did you mean number_of_gpu?"),
    ("enable_token_auth", "false", "did you mean disable_token_authorization=true?"),
    ("enable_token_auth", " True ", "did you mean disable_token_authorization=false?"),
    ("enable_token_authorization", "no", "did you mean disable_token_authorization, its opposite?"),
    ("disable_token_auth", "true", "did you mean disable_token_authorization?"),
    ("token_auth", "false", "did you mean disable_token_authorization?"),
    ("enable_system_metrics", "false", "did you mean disable_system_metrics=true?"),
    ("enable_metrics", "true", "did you mean enable_metrics_api?"),
    ("disable_metrics", "true", "did you mean enable_metrics_api=false?"),
    ("disable_model_api", "false", "did you mean enable_model_api=true?"),
    ("disable_envvars_config", "true", "did you mean enable_envvars_config=false?"),
    ("disable_console", "true", "did you mean enable_console=false?"),
    ("api_keys", "", "did you mean api_keys_file?"),
    ("certificate", "", "did you mean certificate_file?"),
    ("response_timeout", "", "did you mean default_response_timeout?"),
    ("port", "8080", "did you mean inference_address?"),
    ("ssl_cert", "", ""),
    ("batchSize", "4", "batchSize is a key of a model: write it into its model-config.yaml"),
    ("min_workers", "4", "minWorkers is a key of a model: write it into its model-config.yaml"),
    ("metrics", "", ""),
    ("enable", "true", ""),
    ("blah", "", ""),
    ("", "", ""),
]


@pytest.mark.parametrize(("key", "value", "said"), CASES)
def test_the_key_that_is_meant(key: str, value: str, said: str) -> None:
    assert meant(key, value) == said


def test_names_of_elsewhere_lead_to_keys() -> None:
    fields = {*ServerConfig.__struct_fields__}
    assert {*_ELSEWHERE.values()} <= fields
    assert not fields & _ELSEWHERE.keys()
