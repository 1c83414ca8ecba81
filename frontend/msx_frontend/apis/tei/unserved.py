"""TEI's routes that no model here can answer: a sentence says why."""

import msgspec

from msx_core.generation import EmbedReply
from msx_frontend.generation.errors import Invalid
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.text_request import TextRequest


class SparseValue(msgspec.Struct):
    index: int
    value: float


def embed_sparse(request: TextRequest) -> OperationReply[EmbedReply]:
    raise Invalid(
        "`/embed_sparse` is not served: no model here has a head of masked words (SPLADE), whose scores sparse vectors "
        "are; /embed makes dense ones"
    )


def embed_all(request: TextRequest) -> OperationReply[EmbedReply]:
    raise Invalid(
        "`/embed_all` is not served: the states of single tokens stay on the device; /embed makes one vector of a text"
    )
