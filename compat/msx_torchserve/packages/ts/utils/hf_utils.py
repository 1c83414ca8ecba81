"""`ts.utils.hf_utils`."""

from pathlib import Path
from typing import Any

from .._extras import need


def download_model(
    model_id: str = "meta-llama/Meta-Llama-3.1-8B-Instruct",
    revision: str = "main",
    model_path: str = ".cache",
    use_auth_token: bool = True,
) -> Any:
    """Fetch a model of Hugging Face's hub into `model_path`; returns its folder."""
    hub = need("huggingface_hub")
    return hub.snapshot_download(
        repo_id=model_id, revision=revision, cache_dir=Path(model_path), token=use_auth_token or None
    )
