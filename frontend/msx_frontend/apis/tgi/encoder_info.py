"""TEI's description of a server, at the path of TGI's: for models that embed or classify."""

from msx_core.generation import Capabilities
from msx_frontend import __version__
from msx_frontend.apis.tgi.reply_schemas import Ids, Info
from msx_frontend.models.versions.model_version import ModelVersion


def encoder_info(version: ModelVersion, most_texts: int) -> Info:
    offered = version.schema.capabilities or Capabilities()
    return Info(
        model_id=offered.model_id or version.source.name,
        model_sha=None,
        model_dtype=None,
        model_type=_kind(offered),
        max_concurrent_requests=offered.max_concurrent,
        max_input_length=offered.max_input_tokens,
        max_batch_tokens=None,
        max_batch_requests=None,
        max_client_batch_size=most_texts,
        auto_truncate=False,
        tokenization_workers=1,
        router="msx-serve",
        version=__version__,
        sha=None,
        docker_label=None,
    )


def _kind(offered: Capabilities) -> dict[str, Ids]:
    if not offered.classify:
        return {"embedding": {}}
    labels = {str(number): label for number, label in enumerate(offered.labels)}
    numbers = {label: number for number, label in enumerate(offered.labels)}
    return {"reranker" if offered.rerank else "classifier": {"id2label": {**labels}, "label2id": {**numbers}}}
