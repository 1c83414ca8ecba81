import pytest

pytest.importorskip("mindspore")
