import assert from "node:assert/strict";

import Anthropic, { APIError, AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";

import { KEY, URL, parrot, waitForCancels } from "./server.mjs";

const client = new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0 });
const TOOL = {
  name: "weather",
  description: "The weather of a place",
  input_schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
};
const CALL = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'; // the parrot says it

const asked = (content, more = {}) =>
  ({ model: "parrot", max_tokens: 64, messages: [{ role: "user", content }], ...more });

export async function check_models() {
  const found = [];
  for await (const model of client.models.list()) found.push(model.id);
  assert.deepEqual(found, ["parrot"]);
  assert.equal((await client.models.retrieve("parrot")).display_name, "parrot");
}

export async function check_message() {
  const message = await client.messages.create(asked("one two three"));
  assert.equal(message.content[0].text, "one two three");
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ["end_turn", 4]);
  assert.equal(message.id, `msg_${message._request_id}`);
  const beta = await client.beta.messages.create(asked("one", { betas: ["interleaved-thinking-2025-05-14"] }));
  assert.equal(beta.content[0].text, "one");
}

export async function check_stops() {
  const cut = await client.messages.create(asked("one two three", { max_tokens: 2 }));
  assert.deepEqual([cut.content[0].text, cut.stop_reason], ["one two", "max_tokens"]);
  const stopped = await client.messages.create(asked("one two three", { stop_sequences: ["two"] }));
  assert.deepEqual([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", "two"]);
}

export async function check_stream() {
  const texts = [];
  const stream = client.messages.stream(asked("one two three")).on("text", (text) => texts.push(text));
  const message = await stream.finalMessage();
  assert.equal(texts.join(""), "one two three");
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ["end_turn", 4]);
}

export async function check_tools() {
  const first = await client.messages.stream(asked(CALL, { tools: [TOOL] })).finalMessage();
  const [text, call] = first.content;
  assert.deepEqual([text.text, call.name, call.input, first.stop_reason],
    ["Let me see.", "weather", { place: "here" }, "tool_use"]);
  const result = { type: "tool_result", tool_use_id: call.id, content: "sunny" };
  const messages = [...asked(CALL).messages, { role: "assistant", content: first.content }, { role: "user", content: [result] }];
  assert.equal((await client.messages.create({ ...asked(""), messages, tools: [TOOL] })).content[0].text, "sunny");
}

export async function check_tokens() {
  const { input_tokens: counted } = await client.messages.countTokens({ model: "parrot", messages: asked("one two three").messages });
  assert.equal(counted, (await client.messages.create(asked("one two three"))).usage.input_tokens);
}

export async function check_errors() {
  await assert.rejects(client.messages.create(asked("x", { max_tokens: 0 })), BadRequestError);
  await assert.rejects(client.messages.create(asked("x", { model: "crow" })), NotFoundError);
  const stranger = new Anthropic({ baseURL: URL, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.messages.create(asked("x")), AuthenticationError);
  const byToken = new Anthropic({ baseURL: URL, authToken: KEY, apiKey: null, maxRetries: 0 });
  assert.equal((await byToken.messages.create(asked("one"))).content[0].text, "one");
  await assert.rejects(client.messages.stream(asked("fail-later b c")).finalMessage(), APIError);
}

export async function check_a_client_that_leaves() {
  const before = (await parrot()).cancelled;
  const stream = await client.messages.create(asked("hang on", { stream: true }));
  for await (const event of stream) {
    assert.equal(event.type, "message_start");
    break;
  }
  await waitForCancels(before + 1);
}
