import assert from "node:assert/strict";

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI } from "@langchain/openai";
import { z } from "zod";

import { LONG, PROMPT, TEXT } from "./common.mjs";
import { KEY, URL } from "./server.mjs";

const PLACE = { apiKey: KEY, configuration: { baseURL: `${URL}/v1` }, maxRetries: 0, model: "llama", temperature: 0 };
const model = (more = {}) => new ChatOpenAI({ ...PLACE, maxTokens: 8, ...more });
const Answer = z.object({ kind: z.enum(["loop", "class"]) });
const lookUp = tool(async () => "a loop", {
  name: "look_up",
  description: "What a word means",
  schema: z.object({ word: z.enum(["if", "for"]) }),
});

async function text(stream) {
  let found = "";
  for await (const chunk of stream) found += typeof chunk === "string" ? chunk : chunk.text;
  return found;
}

export async function check_1_texts() {
  const reply = await model().invoke(PROMPT);
  assert.ok(TEXT.startsWith(reply.content), reply.content);
  assert.deepEqual([reply.usage_metadata.output_tokens, reply.response_metadata.finish_reason], [8, "length"]);
  assert.equal(await text(await model().stream(PROMPT)), reply.content);
  const many = await model().batch([PROMPT, PROMPT, PROMPT]);
  assert.deepEqual(new Set(many.map((one) => one.content)), new Set([reply.content]));
}

export async function check_2_a_form() {
  for (const method of ["jsonSchema", "functionCalling"]) {
    const able = model({ maxTokens: 150 }).withStructuredOutput(Answer, { name: "answer", method });
    assert.ok(["loop", "class"].includes((await able.invoke("for")).kind), method);
  }
}

export async function check_3_a_tool_that_must_be_used() {
  const options = { tool_choice: "any", parallel_tool_calls: false };
  const asked = new HumanMessage("for");
  const reply = await model({ maxTokens: 120 }).bindTools([lookUp], options).invoke([asked]);
  const [call] = reply.tool_calls;
  assert.ok(["if", "for"].includes(call.args.word));
  const result = new ToolMessage({ content: await lookUp.invoke(call.args), tool_call_id: call.id });
  assert.equal((await model().bindTools([lookUp]).invoke([asked, reply, result])).usage_metadata.output_tokens, 8);
}

export async function check_4_other_apis() {
  const responses = model({ useResponsesApi: true });
  const whole = (await responses.invoke(PROMPT)).text;
  assert.ok(TEXT.startsWith(whole), whole);
  assert.equal(await text(await responses.stream(PROMPT)), whole);
  assert.ok(await new OpenAI({ ...PLACE, maxTokens: 8 }).invoke(PROMPT));
}

export async function check_5_errors() {
  await assert.rejects(() => model().invoke(LONG), (error) => /maximum context length is/.test(String(error)));
}
