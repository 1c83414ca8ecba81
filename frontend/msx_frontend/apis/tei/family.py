"""TEI's API. Its clients know of one model and do not name it, as TGI's."""

from collections.abc import Iterator

from msx_core.service_errors import ServiceError
from msx_frontend.apis.tei.embed import EmbedTexts, SimilarityRequest, embed, similarity
from msx_frontend.apis.tei.predict import PredictRequest, ScoredLabel, predict
from msx_frontend.apis.tei.rerank import RankedText, RerankTexts, rerank
from msx_frontend.apis.tei.root import RootRequest, root
from msx_frontend.apis.tei.unserved import SparseValue, embed_all, embed_sparse
from msx_frontend.generation.errors import as_json, tgi_failure
from msx_frontend.generation.ranking import Ranking
from msx_frontend.generation.simple_tokens import DecodeTokens, decode_tokens
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, Route


def tei(models: TextModels) -> Family:
    return Family("TEI", tuple(_routes(models)), failure)


def failure(error: ServiceError) -> Failure:
    return as_json(tgi_failure(error))


def _routes(models: TextModels) -> Iterator[Route]:
    api = models.api(tgi_failure)
    directory = models.directory
    yield Route(
        "POST",
        "/",
        text_route(api, root),
        summary="What the model does: embed, predict or rerank",
        request_schema=RootRequest,
        example={"inputs": "a text"},
        when=lambda: bool(directory.language_models()) and not directory.generates(),
    )
    yield Route(
        "POST",
        "/embed",
        text_route(api, embed),
        summary="Vectors of texts",
        request_schema=EmbedTexts,
        example={"inputs": ["a text", "another one"]},
        response_schema=list[list[float]],
    )
    yield Route(
        "POST",
        "/embed_sparse",
        text_route(api, embed_sparse),
        summary="Refused: no model here has a head for sparse vectors",
        request_schema=EmbedTexts,
        example={"inputs": ["a text"]},
        response_schema=list[list[SparseValue]],
    )
    yield Route(
        "POST",
        "/embed_all",
        text_route(api, embed_all),
        summary="Refused: only one vector is made of a text",
        request_schema=EmbedTexts,
        example={"inputs": ["a text"]},
        response_schema=list[list[list[float]]],
    )
    yield Route(
        "POST",
        "/decode",
        text_route(api, decode_tokens),
        summary="The texts of tokens",
        request_schema=DecodeTokens,
        example={"ids": [[1, 2]]},
        response_schema=list[str],
    )
    yield Route(
        "POST",
        "/similarity",
        text_route(api, similarity),
        summary="How alike texts are to one of them",
        request_schema=SimilarityRequest,
        example={"inputs": {"source_sentence": "The sea is salty", "sentences": ["Salt water", "A cat"]}},
        response_schema=list[float],
    )
    yield Route(
        "POST",
        "/rerank",
        text_route(api, rerank),
        summary="Texts by how well they fit a query; with documents in Cohere's shape",
        request_schema=RerankTexts,
        example={"query": "Why is the sea salty?", "texts": ["Rivers carry salts.", "Cats sleep."]},
        response_schema=list[RankedText] | Ranking,
    )
    yield Route(
        "POST",
        "/predict",
        text_route(api, predict),
        summary="Labels of texts, or of pairs of texts",
        request_schema=PredictRequest,
        example={"inputs": "What a good day"},
        response_schema=list[ScoredLabel | list[ScoredLabel]],
    )
