"""Lines about the cards, and their memory, by NVML."""

from __future__ import annotations

from tests.gpu_check.cards import Cards
from tests.gpu_check.fakes import UUIDS, FakeNvml


def test_the_page_names_driver_and_cards() -> None:
    assert list(Cards(FakeNvml()).lines()) == [
        "- driver 570.133.20, made for CUDA up to 12.8",
        "- GPU 0: NVIDIA H100 80GB HBM3, 81,559 MiB",
        "- GPU 1: NVIDIA H100 80GB HBM3, 81,559 MiB",
    ]


def test_memory_is_that_of_the_gpu_of_this_uuid() -> None:
    assert Cards(FakeNvml(1234)).used(UUIDS[0]) == 1234
