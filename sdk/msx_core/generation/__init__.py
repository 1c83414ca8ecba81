"""Requests and replies of text generation: the boundary between the APIs and any handler.

The frontend, which has no tokenizer, makes a `GenerateRequest` of an OpenAI, TGI or KServe request, and shapes its
replies from `GenerateDelta`s. A handler that speaks these types gets all of those APIs; `TextGenerationHandler` in
`msx_sdk.text_generation` does the speaking. Parameters mean what they mean in Hugging Face transformers, vLLM and TGI.
"""

from msx_core.generation.adapters import AdapterFiles as AdapterFiles
from msx_core.generation.adapters import LoadAdapterReply as LoadAdapterReply
from msx_core.generation.adapters import LoadAdapterRequest as LoadAdapterRequest
from msx_core.generation.classify import ClassifyReply as ClassifyReply
from msx_core.generation.classify import ClassifyRequest as ClassifyRequest
from msx_core.generation.embed import EmbedReply as EmbedReply
from msx_core.generation.embed import EmbedRequest as EmbedRequest
from msx_core.generation.image import Image as Image
from msx_core.generation.operations import CLASSIFY as CLASSIFY
from msx_core.generation.operations import EMBED as EMBED
from msx_core.generation.operations import GENERATE as GENERATE
from msx_core.generation.operations import LOAD_ADAPTER as LOAD_ADAPTER
from msx_core.generation.operations import SLEEP as SLEEP
from msx_core.generation.operations import TOKENIZE as TOKENIZE
from msx_core.generation.operations import Capabilities as Capabilities
from msx_core.generation.owner import Owner as Owner
from msx_core.generation.sampling import BeamSearch as BeamSearch
from msx_core.generation.sampling import Constraint as Constraint
from msx_core.generation.sampling import SamplingDefaults as SamplingDefaults
from msx_core.generation.sampling import SamplingParams as SamplingParams
from msx_core.generation.sleep import SleepReply as SleepReply
from msx_core.generation.sleep import SleepRequest as SleepRequest
from msx_core.generation.text import CallPiece as CallPiece
from msx_core.generation.text import ContextLengthExceeded as ContextLengthExceeded
from msx_core.generation.text import FinishReason as FinishReason
from msx_core.generation.text import GenerateDelta as GenerateDelta
from msx_core.generation.text import GenerateRequest as GenerateRequest
from msx_core.generation.text import MessageDelta as MessageDelta
from msx_core.generation.text import ParseOptions as ParseOptions
from msx_core.generation.text import Token as Token
from msx_core.generation.text import TopToken as TopToken
from msx_core.generation.text import Usage as Usage
from msx_core.generation.tokenize import TextSpan as TextSpan
from msx_core.generation.tokenize import TokenizeReply as TokenizeReply
from msx_core.generation.tokenize import TokenizeRequest as TokenizeRequest
