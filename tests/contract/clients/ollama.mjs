import assert from "node:assert/strict";

import { Ollama } from "ollama";

import { KEY, URL, parrot, waitForCancels } from "./server.mjs";

const client = new Ollama({ host: URL, headers: { Authorization: `Bearer ${KEY}` } });
const TOOL = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
};
const CALL = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'; // the parrot says it

const chat = (content, more = {}) => client.chat({ model: "parrot", messages: [{ role: "user", content }], ...more });

export async function check_models() {
  assert.deepEqual((await client.list()).models.map((model) => model.model), ["parrot:latest"]);
  assert.deepEqual((await client.ps()).models.map((model) => model.model), ["parrot:latest"]);
  assert.ok((await client.show({ model: "parrot:latest" })).capabilities.includes("completion"));
  assert.match((await client.version()).version, /^\d/);
}

export async function check_chat() {
  const reply = await chat("one two three");
  assert.deepEqual([reply.message.content, reply.done_reason, reply.eval_count], ["one two three", "stop", 4]);
  const cut = await chat("one two three", { options: { num_predict: 2 }, keep_alive: "5m" });
  assert.deepEqual([cut.message.content, cut.done_reason], ["one two", "length"]);
}

export async function check_streams() {
  const texts = [];
  for await (const part of await chat("one two three", { stream: true })) texts.push(part.message.content);
  assert.equal(texts.join(""), "one two three");
  const generated = [];
  for await (const part of await client.generate({ model: "parrot", prompt: "one two", stream: true })) generated.push(part.response);
  assert.equal(generated.join(""), "one two");
}

export async function check_tools() {
  const { message } = await chat(CALL, { tools: [TOOL] });
  const { name, arguments: given } = message.tool_calls[0].function;
  assert.deepEqual([name, given], ["weather", { place: "here" }]);
  const messages = [{ role: "user", content: CALL }, message, { role: "tool", tool_name: "weather", content: "sunny" }];
  assert.equal((await chat("", { messages, tools: [TOOL] })).message.content, "sunny");
}

export async function check_a_schema() {
  const format = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
  assert.deepEqual(JSON.parse((await chat("x", { format })).message.content), { count: 7 });
}

export async function check_embed() {
  const { embeddings } = await client.embed({ model: "parrot", input: ["one", "two"] });
  assert.deepEqual(embeddings.map((one) => one.length), [4, 4]);
}

export async function check_errors() {
  await assert.rejects(chat("x", { model: "crow" }), { status_code: 404 });
  await assert.rejects(client.pull({ model: "crow" }), { status_code: 400 });
  await assert.rejects(new Ollama({ host: URL }).chat({ model: "parrot", messages: [] }), { status_code: 401 });
  await assert.rejects(async () => {
    for await (const _ of await chat("fail-later b c", { stream: true }));
  });
}

export async function check_a_client_that_leaves() {
  const before = (await parrot()).cancelled;
  const stream = await chat("hang on", { stream: true });
  setTimeout(() => stream.abort(), 200);
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, { name: "AbortError" });
  await waitForCancels(before + 1);
}
