"""The schemes of URLs that name models of hubs and object stores."""

HF, MODELSCOPE, S3, OBS = "hf", "modelscope", "s3", "obs"
HUBS = (HF, MODELSCOPE, S3, OBS)


def is_hub(text: str) -> bool:
    """Whether it is a URL of a hub's model, well-formed or not."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme.lower() in HUBS
