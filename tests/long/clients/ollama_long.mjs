import assert from "node:assert/strict";

import { Ollama } from "ollama";

import { LONG, PARAMETERS, PROMPT, TEXT, user } from "./common.mjs";
import { KEY, URL } from "./server.mjs";

const client = new Ollama({ host: URL, headers: { Authorization: `Bearer ${KEY}` } });
const options = { temperature: 0, num_predict: 8 };
const chat = (content = PROMPT, more = {}) => client.chat({ model: "llama", messages: user(content), options, ...more });

export async function check_1_texts() {
  const reply = await chat();
  assert.ok(TEXT.startsWith(reply.message.content), reply.message.content);
  assert.deepEqual([reply.done_reason, reply.eval_count], ["length", 8]);
  let streamed = "";
  for await (const part of await chat(PROMPT, { stream: true })) streamed += part.message.content;
  assert.equal(streamed, reply.message.content);
  const asked = { model: "llama", prompt: PROMPT, raw: true, options };
  const whole = (await client.generate(asked)).response;
  let generated = "";
  for await (const part of await client.generate({ ...asked, stream: true })) generated += part.response;
  assert.equal(generated, whole);
}

export async function check_2_a_form() {
  const reply = await chat("for", { format: PARAMETERS, options: { temperature: 0, num_predict: 150 } });
  assert.ok(["if", "for"].includes(JSON.parse(reply.message.content).word));
}

export async function check_3_errors() {
  await assert.rejects(chat(LONG), { status_code: 400 });
  await assert.rejects(client.embed({ model: "llama", input: "a" }), { status_code: 400 });
}
