import assert from "node:assert/strict";

import { CohereClientV2, CohereError } from "cohere-ai";

import { KEY, URL, parrot, waitForCancels } from "./server.mjs";

const client = new CohereClientV2({ token: KEY, environment: URL });
const user = (content) => [{ role: "user", content }];
const SAID = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>';
const TOOL = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
};

async function events(asked) {
  const found = [];
  for await (const event of await client.chatStream({ model: "parrot", ...asked })) found.push(event);
  return found;
}

export async function check_models() {
  const { models } = await client.models.list();
  assert.deepEqual(models.map((model) => model.name), ["parrot"]);
  assert.equal((await client.models.get("parrot")).contextLength, 2000);
}

export async function check_chat() {
  const reply = await client.chat({ model: "parrot", messages: user("one two three") });
  assert.equal(reply.message.content[0].text, "one two three");
  assert.deepEqual([reply.finishReason, reply.usage.tokens.outputTokens], ["COMPLETE", 4]);
}

export async function check_stream() {
  const found = await events({ messages: user("one two three") });
  const texts = found.filter((one) => one.type === "content-delta").map((one) => one.delta.message.content.text);
  assert.equal(texts.join(""), "one two three");
  assert.deepEqual([found[0].type, found.at(-1).delta.finishReason], ["message-start", "COMPLETE"]);
}

export async function check_tools() {
  const reply = await client.chat({ model: "parrot", messages: user(SAID), tools: [TOOL] });
  const [call] = reply.message.toolCalls;
  assert.deepEqual(JSON.parse(call.function.arguments), { place: "here" });
  assert.deepEqual([reply.message.toolPlan, reply.finishReason], ["Let me see.", "TOOL_CALL"]);
  const { toolCalls, toolPlan } = reply.message;
  const result = { role: "tool", toolCallId: call.id, content: "sunny" };
  const messages = [...user(SAID), { role: "assistant", toolCalls, toolPlan }, result];
  const again = await client.chat({ model: "parrot", messages, tools: [TOOL] });
  assert.equal(again.message.content[0].text, "sunny");
}

export async function check_tools_in_a_stream() {
  const found = await events({ messages: user(SAID), tools: [TOOL] });
  const grown = found.filter((one) => one.type === "tool-call-delta");
  const text = grown.map((one) => one.delta.message.toolCalls.function.arguments).join("");
  assert.deepEqual(JSON.parse(text), { place: "here" });
  assert.equal(found.find((one) => one.type === "tool-call-start").delta.message.toolCalls.function.name, "weather");
}

export async function check_embed() {
  const asked = { model: "parrot", texts: ["a", "bb"], inputType: "search_document", embeddingTypes: ["float"] };
  const reply = await client.embed(asked);
  assert.deepEqual(reply.embeddings.float.map((vector) => vector.length), [4, 4]);
}

export async function check_errors() {
  const failed = (status) => (error) => error instanceof CohereError && error.statusCode === status;
  await assert.rejects(() => client.chat({ model: "crow", messages: user("x") }), failed(404));
  await assert.rejects(() => client.chat({ model: "parrot", messages: [] }), failed(400));
  const stranger = new CohereClientV2({ token: "wrong", environment: URL });
  await assert.rejects(() => stranger.chat({ model: "parrot", messages: user("x") }), failed(401));
}

export async function check_a_client_that_leaves() {
  const before = (await parrot()).cancelled;
  const leaving = new AbortController();
  const left = async () => {
    const asked = { model: "parrot", messages: user("hang on") };
    for await (const _ of await client.chatStream(asked, { abortSignal: leaving.signal })) leaving.abort();
  };
  await assert.rejects(left, { name: "AbortError" });
  await waitForCancels(before + 1);
}
