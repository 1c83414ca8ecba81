"""Errors of a connection or of one of its streams (RFC 9113 §5.4, §7)."""

from enum import IntEnum


class ErrorCode(IntEnum):
    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD

    @classmethod
    def named(cls, number: int) -> str:
        """The name of a code that a peer sent, which may be an unknown one."""
        return cls(number).name if number in cls._value2member_map_ else f"code {number}"


class ConnectionFault(Exception):
    """The peer broke a rule on which the whole connection rests: GOAWAY with this text, and the end."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class StreamFault(Exception):
    """One stream cannot go on: RST_STREAM."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
