import pytest

pytest.importorskip("numpy")
pytest.importorskip("llguidance")
pytest.importorskip("tokenizers")
