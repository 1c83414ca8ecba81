"""`ts.protocol.otf_message_handler`: older handlers import the call for streams from here."""

from ..handler_utils.utils import send_intermediate_predict_response

__all__ = ["send_intermediate_predict_response"]
