"""The NPUs that a plan may be made for, and where each number is from.

[1] conf/hardware_config.py of github.com/JiusiServe/light-llm-simulator: memory, cube peak in float16, bandwidth of the
    memory and between dies, of 910B2, 910B3, 910B4 and of a die of the A3 pod (910C).
[2] src/platform/platform_config/Ascend910B2C.ini of CANN's runtime (gitcode.com): 24 cores, 1800 MHz, cubes of
    16×16×16: 24 × 1.8e9 × 8192 = 353.9e12 operations a second, as [1] has it. Its 294.9 and 245.7 are 20 cores at
    1800 and at 1500 MHz.
[3] 3dnews.ru/1131049 on the Atlas 300I Duo: two chips, 96 GB, 408 GB/s and 280e12 int8 operations a second together.
"""

from msx_llm.kernels.device import DevicePeaks

GIB = 1 << 30
_LINK = "the bandwidth between NPUs is from one source"

PEAKS = {
    "910B1": DevicePeaks(64 * GIB, 1.6e12, 353.8e12, 196e9, "no source was found: these are the 910B2's numbers"),
    "910B2": DevicePeaks(64 * GIB, 1.6e12, 353.8e12, 196e9, _LINK),  # [1], [2]
    "910B3": DevicePeaks(64 * GIB, 1.6e12, 294.9e12, 196e9, _LINK),  # [1], [2]
    "910B4": DevicePeaks(32 * GIB, 0.8e12, 245.7e12, 32e9, _LINK),  # [1], [2]
    "910C": DevicePeaks(
        64 * GIB, 1.6e12, 353.8e12, 196e9,
        "a 910C has two dies, which are two devices each of these numbers; other sources say up to 400e12 "
        "operations a second for a die",
    ),  # [1]; techpowerup.com/335749: 780e12 and 3200 GB/s for both dies
    "310P": DevicePeaks(
        48 * GIB, 204e9, 70e12, None,
        "half of an Atlas 300I Duo, its float16 taken as half of int8; other cards have 24 GB a chip",
    ),  # [3]
}  # fmt: skip
