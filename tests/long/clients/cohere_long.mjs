import assert from "node:assert/strict";

import { CohereClientV2, CohereError } from "cohere-ai";

import { LONG, PARAMETERS, PROMPT, TEXT, user } from "./common.mjs";
import { KEY, URL } from "./server.mjs";

const client = new CohereClientV2({ token: KEY, environment: URL });
const TOOL = { type: "function", function: { name: "look_up", parameters: PARAMETERS } };
const asked = (content = PROMPT, more = {}) =>
  ({ model: "llama", maxTokens: 8, temperature: 0, messages: user(content), ...more });

export async function check_1_texts() {
  const reply = await client.chat(asked());
  const [{ text }] = reply.message.content;
  assert.ok(TEXT.startsWith(text), text);
  assert.deepEqual([reply.finishReason, reply.usage.tokens.outputTokens], ["MAX_TOKENS", 8]);
  const texts = [];
  for await (const event of await client.chatStream(asked())) {
    if (event.type === "content-delta") texts.push(event.delta.message.content.text);
  }
  assert.equal(texts.join(""), text);
}

export async function check_2_what_the_text_is_held_to() {
  const reply = await client.chat(asked("for", { tools: [TOOL], toolChoice: "REQUIRED", maxTokens: 60 }));
  assert.equal(reply.message.toolCalls[0].function.name, "look_up");
  const responseFormat = { type: "json_object", jsonSchema: PARAMETERS };
  const held = await client.chat(asked("for", { responseFormat, maxTokens: 150 }));
  assert.ok(["if", "for"].includes(JSON.parse(held.message.content[0].text).word));
}

export async function check_3_errors() {
  await assert.rejects(() => client.chat(asked(LONG)), (error) => error instanceof CohereError && error.statusCode === 400);
}
