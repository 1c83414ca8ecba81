import pytest

for library in ("numpy", "tokenizers", "jinja2", "llguidance"):  # of the extra `mindspore`
    pytest.importorskip(library)
