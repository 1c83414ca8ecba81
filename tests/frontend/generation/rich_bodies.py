"""A body for each route that generates, in which every member that has a shape of its own is given."""

from typing import Any

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False}
SAMPLING = {"temperature": 0.5, "top_p": 0.5, "seed": 3, "stop": ["z"]}
MESSAGES = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "u"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "r"},
    {"role": "tool", "tool_call_id": "c", "content": "t"},
    {"role": "user", "content": "u"},
]
RICH: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "m",
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "text"},
        "stream_options": {"include_usage": True},
        "stream": True,
        "logit_bias": {"3": 1},
        "chat_template_kwargs": {"a": 1},
        "structured_outputs": {"regex": "a"},
        "logprobs": True,
        "top_logprobs": 2,
        "n": 1,
        **SAMPLING,
    },
    "/v1/completions": {"model": "m", "prompt": ["a"], "logprobs": 1, "stream": False, "max_tokens": 3, **SAMPLING},
    "/v1/responses": {
        "model": "m",
        "instructions": "i",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}], "content": [{"text": "r"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "o"}]},
            {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "i"},
            {"type": "custom_tool_call_output", "call_id": "d", "output": "o"},
            {"type": "shell_call", "call_id": "e", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "e", "output": [{"stdout": "x"}]},
            {"type": "additional_tools", "tools": [{"type": "function", **FUNCTION}]},
        ],
        "tools": [
            {"type": "function", **FUNCTION},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "low"},
        "metadata": {"a": "b"},
        "stream": True,
        "include": ["a"],
        "temperature": 0.5,
    },
    "/v1/messages": {
        "model": "m",
        "max_tokens": 8,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "text", "text": "a"},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [{"type": "text", "text": "r"}],
                        "is_error": True,
                    },
                    {"type": "document", "source": {"type": "text", "data": "d"}},
                    {"type": "search_result", "content": [{"type": "text", "text": "r"}]},
                ],
            },
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low"},
        "metadata": {"user_id": "x"},
        "stop_sequences": ["z"],
        "stream": True,
    },
    "/v2/chat": {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "u"}, {"type": "document", "document": {"data": {"a": "b"}}}],
            },
            {
                "role": "assistant",
                "tool_plan": "p",
                "tool_calls": [CALL],
                "content": [{"type": "thinking", "thinking": "t"}],
            },
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": [{"type": "document", "document": {"id": "1", "data": "d"}}],
            },
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "documents": ["d", {"id": "1", "data": {"title": "t"}}],
        "response_format": {"type": "json_object", "json_schema": SCHEMA},
        "thinking": {"type": "enabled", "token_budget": 3},
        "citation_options": {"mode": "fast"},
        "stop_sequences": ["z"],
        "stream": True,
    },
    "/api/chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "u", "images": []},
            {
                "role": "assistant",
                "content": "",
                "thinking": "t",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "tool", "tool_name": "f", "content": "r"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "options": {"temperature": 0.5, "num_ctx": 8, "stop": ["z"], "num_predict": 4},
        "keep_alive": "5m",
        "think": True,
        "format": SCHEMA,
        "stream": True,
    },
    "/api/generate": {
        "model": "m",
        "prompt": "p",
        "system": "s",
        "options": {"seed": 3},
        "context": [1],
        "stream": False,
    },
    "/generate": {
        "inputs": "p",
        "parameters": {"max_new_tokens": 3, "stop": ["z"], "details": True, "grammar": {"type": "regex", "value": "a"}},
    },
    "/generate_stream": {"inputs": "p", "parameters": {"top_n_tokens": 2, "seed": 3}},
    "/v2/models/m/generate": {"text_input": "p", "parameters": {"max_tokens": 3, "stop": ["z"]}},
    "/models/m/generate": {
        "inputs": "p",
        "parameters": {"do_sample": "False", "max_new_tokens": 3, "return_full_text": True},
    },
}
"""By path."""
