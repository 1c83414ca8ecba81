"""Calls by clients that were made from /openapi.json of the two listeners."""

import made_inference as inference
import made_management as management
import pytest_free as must
from server import KEY, MANAGEMENT, MANAGEMENT_KEY, URL

asked = inference.ApiClient(inference.Configuration(host=URL, access_token=KEY))
managed = management.ApiClient(management.Configuration(host=MANAGEMENT, access_token=MANAGEMENT_KEY))


def check_a_typed_handler():
    query = inference.TypedRequestQuery.from_dict({"text": "a", "points": [{"x": 1, "label": "b"}]})
    reply = inference.TorchServeApi(asked).post_predictions_typed(query)
    assert isinstance(reply, inference.TypedReplyFound)
    assert (reply.text, reply.points[0].label) == ("A", "b")


def check_any_handler():
    assert inference.TorchServeApi(asked).post_predictions_model_name("typed", body={"text": "b"})["text"] == "B"


def check_tensors():
    api = inference.KServeV2Api(asked)
    meta = api.get_v2_models_model("norms")
    tensor = {"name": meta.inputs[0].name, "datatype": "FP32", "shape": [1, 3], "data": [3, 4, 0]}
    body = inference.PostV2ModelsModelInferRequest.from_dict({"inputs": [tensor]})
    assert api.post_v2_models_model_infer("norms", body).outputs[0].data == [5]


def check_a_tensor_of_the_model():
    """The route that the document has of the model itself."""
    tensor = {"name": "rows", "datatype": "FP32", "shape": [1, 3], "data": [6, 8, 0]}
    body = inference.PostV2ModelsNormsInferRequest.from_dict({"inputs": [tensor]})
    assert inference.KServeV2Api(asked).post_v2_models_norms_infer(body).outputs[0].data == [10]


def check_chat():
    request = inference.OpenAIChatRequest(messages=[{"role": "user", "content": "say this"}], max_tokens=8)
    reply = inference.OpenAIApi(asked).post_v1_chat_completions(request)
    assert isinstance(reply, inference.OpenAIChatCompletion)
    assert reply.choices[0].message.content
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def check_completions_embeddings_and_models():
    api = inference.OpenAIApi(asked)
    request = inference.OpenAICompletionRequest.from_dict({"prompt": "say this", "max_tokens": 4})
    assert api.post_v1_completions(request).choices[0].text
    request = inference.OpenAIEmbeddingRequest.from_dict({"input": "a text"})
    assert api.post_v1_embeddings(request).data[0].index == 0
    assert [one.id for one in api.get_v1_models().data] == ["parrot"]


def check_tgi():
    api = inference.TGIApi(asked)
    parameters = inference.TGIParameters(max_new_tokens=4, details=True)
    reply = api.post_generate(inference.TGITgiRequest(inputs="say this", parameters=parameters))
    assert reply.details.generated_tokens == len(reply.details.tokens)
    assert api.get_info().router == "msx-serve"
    first, *_ = api.post_tokenize(inference.TGITgiRequest(inputs="say this"))
    assert first.actual_instance.start == 0  # of TGI; TEI has a list for each text


def check_errors_have_their_form():
    api = inference.TorchServeApi(asked)
    error = must.raises(inference.ApiException, lambda: api.post_predictions_model_name("nobody", body={}))
    assert (error.status, error.data.code, error.data.type) == (404, 404, "ModelNotFoundException")


def check_management():
    api = management.TorchServeManagementApi(managed)
    assert {one.model_name for one in api.get_models().models} == {"typed", "norms", "parrot"}
    assert api.get_models_model_name("typed")[0].workers[0].status == "READY"
    said = api.put_models_model_name("typed", min_worker=2, synchronous=True)
    assert "typed" in said.status
    assert len(api.get_models_model_name("typed")[0].workers) == 2
    assert management.TrafficApi(managed).get_models_model_name_traffic("typed").shares == {"1.0": 1.0}
