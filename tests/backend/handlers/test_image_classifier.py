"""Images in, labels out: TorchServe's forms, hostile images, and the options of the yaml."""

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from PIL import Image

from msx_backend.handlers._images import ImageOptions, image_reader
from msx_core.mindir import TensorSpec
from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel
from tests.backend.handlers.conftest import Serve
from tests.core.images.files import png, tiff

pytestmark = pytest.mark.mindspore

SOURCE = '''
from mindspore import Tensor, nn


class Brightness(nn.Cell):
    """[n, 1, 2, 2] -> scores [n, 4]: the four pixels, times ten"""

    def construct(self, image: Tensor) -> Tensor:
        return image.reshape((-1, 4)) * 10
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from msx_core.mindspore.cells import import_source

    folder = tmp_path_factory.mktemp("images")
    (folder / "brightness.py").write_text(SOURCE)
    net = vars(import_source(folder / "brightness.py"))["Brightness"]()
    images = ms.Tensor(shape=[None, 1, 2, 2], dtype=ms.float32)
    net.set_inputs(images)
    ms.export(net, images, file_name=str(folder / "brightness"), file_format="MINDIR")
    ms.save_checkpoint([{"name": "unused", "data": ms.Tensor([1.0])}], str(folder / "brightness.ckpt"))
    labels = {"0": "upper left", "1": ["n01", "upper right"], "2": "lower left"}
    (folder / "index_to_name.json").write_text(json.dumps(labels), "utf-8-sig")  # as some editors do
    return folder


@pytest.fixture
def serve(shared: Serve) -> Serve:
    return shared


@pytest.fixture
def model(serve: Serve, folder: Path) -> LocalModel:
    return serve("image_classifier", "brightness.mindir", {"image": {"top_k": 2}}, folder)


def picture(*brightest: int, size: int = 2, kind: str = "PNG", mode: str = "L") -> bytes:
    """Four fields, the given ones white."""
    fields = np.zeros(4, np.uint8)
    fields[list(brightest)] = 255
    image = Image.fromarray(fields.reshape(2, 2)).resize((size, size), Image.Resampling.NEAREST).convert(mode)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def winner(answer: dict[str, float]) -> str:
    assert list(answer.values()) == sorted(answer.values(), reverse=True)
    return next(iter(answer))


@pytest.mark.parametrize("body", [
    picture(1), bytearray(picture(1)), base64.b64encode(picture(1)).decode(),
    {"data": base64.b64encode(picture(1)).decode()}, {"b64": base64.b64encode(picture(1)).decode()},
    base64.encodebytes(picture(1)).decode(), {"data": base64.encodebytes(picture(1)).decode().replace("\n", "\r\n")},
    "data:image/png;base64," + base64.encodebytes(picture(1)).decode(),
    "data:image/png;base64," + base64.b64encode(picture(1)).decode(), [[[0, 1], [0, 0]]], {"data": [[[0, 1], [0, 0]]]},
    picture(1, size=64), picture(1, mode="RGB"), picture(1, mode="RGBA"), picture(1, size=64, kind="JPEG"),
    picture(1, kind="GIF"), picture(1, kind="BMP"), picture(1, kind="WEBP", size=64),
])  # fmt: skip
def test_every_form_of_an_image(model: LocalModel, body: Any) -> None:
    (reply,) = model.predict([body])
    assert reply.failure is None
    answer = reply.json()
    assert len(answer) == 2
    assert winner(answer) == "upper right"
    assert answer["upper right"] > 0.9


def test_instances_are_answered_by_predictions(model: LocalModel) -> None:
    encoded = [base64.b64encode(picture(n)).decode() for n in (0, 2)]
    (reply,) = model.predict([{"instances": [{"b64": encoded[0]}, encoded[1]]}])
    assert [winner(answer) for answer in reply.json()["predictions"]] == ["upper left", "lower left"]


def test_a_label_that_is_not_in_the_file_is_its_index(model: LocalModel) -> None:
    assert winner(model.predict([picture(3)])[0].json()) == "3"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no image", "not an image that Pillow can read: 8 bytes of an unknown format"),
        (picture(1)[:40], "not an image that Pillow can read"),
        ("not base64!", "the text is not the base64 of an image"),
        ({"instances": []}, "expected an image file as the body"),
        ({}, "expected an image file as the body"),
        ([[0, 1]], "a tensor of shape [1, 2] does not fit the model's [1, 2, 2]"),
        ([[["a"]]], "expected an image file, its base64 text, or a tensor"),
    ],
)  # fmt: skip
def test_a_bad_image_fails_alone(model: LocalModel, body: Any, message: str) -> None:
    good, bad, also_good = model.predict([picture(0), body, picture(2)])
    assert (winner(good.json()), winner(also_good.json())) == ("upper left", "lower left")
    assert bad.failure is not None
    assert bad.status == 400
    assert message in bad.failure.message


def test_a_request_that_fails_at_its_second_image_leaves_its_neighbours_alone(model: LocalModel) -> None:
    encoded = base64.b64encode(picture(1)).decode()
    good, bad, also_good = model.predict([picture(0), {"instances": [encoded, "no image"]}, picture(2)])
    assert (winner(good.json()), winner(also_good.json())) == ("upper left", "lower left")
    assert bad.status == 400


def bomb(side: int) -> bytes:
    """A PNG header that promises side x side pixels, with next to no data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = side.to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(model: LocalModel, side: int) -> None:
    (reply,) = model.predict([bomb(side)])
    assert reply.failure is not None
    assert reply.status == 400
    assert "pixels" in reply.failure.message
    assert "limit" in reply.failure.message


def reader(shape: tuple[int, ...] = (-1, 3, 4, 4), **options: Any) -> Any:
    return image_reader(ImageOptions(**options), [TensorSpec("image", "float32", shape)])


def test_the_model_tells_size_channels_and_layout() -> None:
    assert reader().shape == (3, 4, 4)
    assert reader((-1, 6, 4, 1)).shape == (6, 4, 1)
    assert reader((1, 1, 8, 8), grayscale=False).shape == (3, 8, 8)
    assert reader((-1, -1, -1, -1), size=(2, 3)).shape == (3, 2, 3)
    with pytest.raises(HandlerLoadError, match=r"image\.size: the model takes any size"):
        reader((-1, 3, -1, -1))


def test_pixels_are_scaled_and_normalised() -> None:
    made = reader(mean=[0.5, 0.5, 0.0], std=[0.5, 0.25, 1.0]).read(picture(0, 1, 2, 3))
    assert made.dtype == np.float32
    assert made[:, 0, 0].tolist() == [1.0, 2.0, 1.0]
    with pytest.raises(HandlerLoadError, match=r"image\.mean: 1 values for 3 channels"):
        reader(mean=[0.5])


def test_resize_keeps_the_proportions_and_cuts_the_middle() -> None:
    file = io.BytesIO()
    stripes = np.zeros((4, 12), np.uint8)
    stripes[:, 4:8] = 255
    Image.fromarray(stripes).save(file, "PNG")
    whole = reader((-1, 1, 4, 4), interpolation="nearest").read(file.getvalue())
    middle = reader((-1, 1, 4, 4), interpolation="nearest", resize=4).read(file.getvalue())
    assert 0 < whole.mean() < 1
    assert middle.min() == 1


def test_an_upright_image_is_read_from_a_turned_one() -> None:
    file, image = io.BytesIO(), Image.fromarray(np.array([[255, 0], [0, 0]], np.uint8))
    exif = image.getexif()
    exif[0x0112] = 3  # turned by 180 degrees
    image.save(file, "PNG", exif=exif)
    assert reader((-1, 1, 2, 2)).read(file.getvalue())[0].tolist() == [[0, 0], [0, 1]]


def test_the_pixel_limit_can_be_lowered_and_lifted() -> None:
    with pytest.raises(InvalidInput, match=r"8x8 = 64 pixels; the limit is 63"):
        reader(max_pixels=63).read(picture(1, size=8))
    lifted = image_reader(ImageOptions(max_pixels=1), [TensorSpec("i", "float32", (1, 1, 2, 2))], limited=False)
    assert lifted.read(picture(1)).shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "model-config.yaml, image.top_k: expected `int` >= 1"),
        ({"topk": 3}, "image: object contains unknown field `topk`"),
        ({"size": "big"}, "image.size: expected"),
        ({"size": [2, 0]}, "image.size: (2, 0) is not a number of pixels"),
        ({"interpolation": "cubic"}, "image.interpolation: invalid enum value 'cubic'"),
    ],
)
def test_wrong_options_name_the_key(serve: Serve, folder: Path, options: Any, message: str) -> None:
    with pytest.raises(HandlerLoadError) as raised:
        serve("image_classifier", "brightness.mindir", {"image": options}, folder)
    assert message in str(raised.value)


def test_a_broken_label_file_is_named(serve: Serve, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "brightness.mindir").symlink_to(folder / "brightness.mindir")
    (tmp_path / "index_to_name.json").write_text("[1]")
    with pytest.raises(HandlerLoadError, match=r"index_to_name\.json: expected an object"):
        serve("image_classifier", "brightness.mindir", {}, tmp_path)


def test_works_on_a_checkpoint(serve: Serve, nets: Path, tmp_path: Path) -> None:
    source = (
        "import mindspore as ms\nfrom mindspore import nn\n\n\nclass Bias(nn.Cell):\n    def __init__(self):\n"
        '        super().__init__()\n        self.bias = ms.Parameter(ms.Tensor([0.0, 0.0, 9.0]), name="bias")\n\n'
        "    def construct(self, image):\n        return image.mean((2, 3)) * 0 + self.bias\n"
    )
    (tmp_path / "own.py").write_text(source)
    (tmp_path / "affine.ckpt").symlink_to(nets / "affine.ckpt")
    model = serve("image_classifier", "affine.ckpt", {"image": {"size": 2}}, tmp_path, modelFile="own.py")
    assert winner(model.predict([picture(1)])[0].json()) == "0"


def v2(datatype: str, shape: list[int], data: Any) -> dict[str, Any]:
    return {"body": {"inputs": [{"name": "any", "datatype": datatype, "shape": shape, "data": data}]}}


def test_tensors_of_kserve(model: LocalModel) -> None:
    """Files as bytes, as base64 in JSON, and finished tensors: each with the labels it has elsewhere."""
    files = [picture(0), picture(1)]
    finished = np.zeros((2, 1, 2, 2), np.float32)
    finished[0, 0, 0, 0] = finished[1, 0, 0, 1] = 1
    for item in (
        v2("BYTES", [2], np.array(files, object)),
        v2("BYTES", [2], [base64.b64encode(file).decode() for file in files]),
        v2("FP32", [2, 1, 2, 2], finished),
        v2("FP32", [2, 1, 2, 2], finished.ravel().tolist()),
    ):
        request = InferenceRequest.of_data("r", item)
        (reply,) = model.predict([request])
        labels, probabilities = reply.json()["outputs"]
        assert labels["data"] == [["upper left", "upper right"], ["upper right", "upper left"]]
        assert (probabilities["shape"], len(probabilities["data"])) == ([2, 2], 2)
        assert probabilities["data"][0][0] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"body": {"inputs": []}}, "expected one input"),
        (v2("BYTES", [1], ["?"]), "image"),
        (v2("BYTES", [0], []), "input 'any' has no images"),
        (v2("FP32", [1, 4], [1, 2]), "input 'any': 2 values do not fill shape [1, 4]"),
        (v2("FP32", [1, 4], [1, 2, 3, "x"]), "input 'any': FP32 takes numbers, and 'data' has a text"),
        (v2("FP32", [-1, 4], [1, 2, 3, 4]), "input 'any': 'shape' must be a list of sizes; it is [-1, 4]"),
        (v2("FP32", [1, 4], [1, 2, 3, 4]), "does not fit the model's"),
        (v2("FP32", [], 1), "input 'any'"),
    ],
)
def test_tensors_that_are_not_images(model: LocalModel, item: dict[str, Any], message: str) -> None:
    (reply,) = model.predict([InferenceRequest.of_data("r", item)])
    assert reply.failure is not None
    assert (reply.status, message in reply.failure.message) == (400, True), reply.failure.message


def test_what_the_classifier_announces(model: LocalModel) -> None:
    announce = model.handler.tensor_signature
    assert announce is not None
    assert [spec.name for spec in announce().outputs] == ["labels", "probabilities"]


@pytest.mark.parametrize("divided", [{"\ufffdPNG\r\n\x1a\n": b"\0\0"}, {"iVBORw0KGgo": b"="}])
def test_an_image_that_came_as_a_form(model: LocalModel, divided: dict[str, bytes]) -> None:
    """As `curl --data-binary @cat.png` sends it."""
    stated = Headers({"content-type": "application/x-www-form-urlencoded"})
    parts = {name: Part(data) for name, data in divided.items()}
    good, bad = model.predict([picture(1), InferenceRequest("r", parts, stated)])
    assert winner(good.json()) == "upper right"
    assert bad.failure is not None
    assert bad.status == 400
    assert "application/x-www-form-urlencoded, which curl and urllib state" in bad.failure.message


XRAY = np.array([[0, 4095], [1000, 3000]], np.uint16)


@pytest.mark.parametrize(
    ("data", "config", "bright"),
    [
        (png(XRAY), {"imageRange": [0, 4095]}, 1.0),
        (png(XRAY, [12]), {}, 1.0),
        (png(XRAY), {}, 4095 / 65535),
        (tiff(XRAY.astype(np.int32)), {"imageRange": [0, 8190.0]}, 0.5),
        (tiff(XRAY.astype(np.float32)), {"imageRange": [-4095, 4095]}, 1.0),
    ],
)
def test_images_of_more_than_8_bits(
    serve: Serve, folder: Path, data: bytes, config: dict[str, Any], bright: float
) -> None:
    model = serve("image_classifier", "brightness.mindir", {"image": {"softmax": False}, **config}, folder)
    (reply,) = model.predict([data])
    assert reply.json()["upper right"] == pytest.approx(10 * bright, rel=1e-5)


def test_colours_of_more_than_8_bits() -> None:
    read = reader((-1, 3, 2, 2), scale=1.0).read(
        tiff(np.stack([XRAY, XRAY // 2, XRAY * 0], -1), tags=[(341, 3, [4095] * 3)])
    )
    assert read[:, 0, 1].tolist() == pytest.approx([255, 255 * 2047 / 4095, 0])


def test_an_image_that_needs_a_range_fails_alone(model: LocalModel) -> None:
    good, bad = model.predict([picture(0), tiff(XRAY.astype(np.float32))])
    assert winner(good.json()) == "upper left"
    assert bad.failure is not None
    assert bad.status == 400
    assert bad.failure.message.startswith("the image has float samples: the model needs imageRange: [black, white]")
