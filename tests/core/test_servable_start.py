from __future__ import annotations

import msgspec

from msx_core.servable_start import ServableStart
from msx_frontend.models.registration import Registration

KEY = b"0123456789abcdef"


def test_the_key_is_in_no_text_and_not_in_what_the_state_keeps() -> None:
    start = ServableStart(directory="/servables", version=2, dec_key=KEY)
    wanted = Registration(url="add.mar", servable=start)
    for text in (str(start), repr(start), str(wanted), str(wanted.to_dict())):
        assert KEY.decode() not in text
    assert "servable" not in wanted.to_dict()


def test_workers_get_it_whole() -> None:
    start = ServableStart(directory="/servables", dec_key=KEY, dec_mode="AES-CBC", device_type="cpu")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(start), type=ServableStart) == start
