from huggingface_hub import InferenceClient
from server import KEY, URL

client = InferenceClient(model=URL, token=KEY)
labels = InferenceClient(model=f"{URL}/predict", token=KEY)


def check_feature_extraction():
    for text in ("aab", ["aab"]):
        (vector,) = client.feature_extraction(text).tolist()
        assert [round(number, 3) for number in vector] == [0.894, 0.447]


def check_its_options():
    text = "b" * 50 + "a" * 100
    assert client.feature_extraction(text, truncate=True, truncation_direction="left").tolist() == [[1, 0]]
    ((_, last),) = client.feature_extraction(text, truncate=True, truncation_direction="right", normalize=True).tolist()
    assert round(last, 3) == 0.707


def check_sentence_similarity():
    found = client.sentence_similarity("aa", ["a", "b", "ab"])
    assert [round(number, 3) for number in found] == [1, 0, 0.707]


def check_text_classification():
    best = labels.text_classification("abbb")
    assert (best.label, round(best.score, 3)) == ("b", 0.949)
