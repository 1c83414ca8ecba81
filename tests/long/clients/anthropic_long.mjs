import assert from "node:assert/strict";

import Anthropic, { BadRequestError } from "@anthropic-ai/sdk";

import { LONG, PARAMETERS, PROMPT, TEXT, user } from "./common.mjs";
import { KEY, URL } from "./server.mjs";

const client = new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0 });
const TOOL = { name: "look_up", input_schema: PARAMETERS };
const asked = (content = PROMPT, more = {}) =>
  ({ model: "llama", max_tokens: 8, temperature: 0, messages: user(content), ...more });

export async function check_1_texts() {
  const message = await client.messages.create(asked());
  const [{ text }] = message.content;
  assert.ok(TEXT.startsWith(text), text);
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ["max_tokens", 8]);
  const streamed = await client.messages.stream(asked()).finalMessage();
  assert.equal(streamed.content[0].text, text);
  const { input_tokens: counted } = await client.messages.countTokens({ model: "llama", messages: user(PROMPT) });
  assert.equal(counted, message.usage.input_tokens);
}

export async function check_2_a_tool_that_must_be_used() {
  const more = { tools: [TOOL], tool_choice: { type: "any", disable_parallel_tool_use: true }, max_tokens: 120 };
  const message = await client.messages.create(asked("for", more));
  assert.ok(["if", "for"].includes(message.content[0].input.word));
  assert.equal(message.stop_reason, "tool_use");
  const result = { type: "tool_result", tool_use_id: message.content[0].id, content: "a loop" };
  const messages = [...user("for"), { role: "assistant", content: message.content }, ...user([result])];
  assert.ok((await client.messages.create(asked("", { messages, tools: [TOOL] }))).usage.output_tokens);
}

export async function check_3_errors() {
  await assert.rejects(client.messages.create(asked(LONG)), BadRequestError);
}
