import pytest

pytest.importorskip("numpy")
pytest.importorskip("jinja2")
pytest.importorskip("tokenizers")
