import assert from "node:assert/strict";

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { z } from "zod";

import { KEY, URL, parrot, waitForCancels } from "./server.mjs";

const PLACE = { apiKey: KEY, configuration: { baseURL: `${URL}/v1` }, maxRetries: 0, model: "parrot" };
const chat = new ChatOpenAI(PLACE);
const Bird = z.object({ name: z.string(), colour: z.enum(["green", "blue"]) });
const weather = tool(async () => "sunny", {
  name: "weather",
  description: "The weather of a place",
  schema: z.object({ place: z.string() }),
});

async function texts(stream) {
  const found = [];
  for await (const chunk of stream) found.push(typeof chunk === "string" ? chunk : chunk.text);
  return found.filter((text) => text);
}

export async function check_invoke() {
  const reply = await chat.invoke("one two");
  assert.equal(reply.content, "one two");
  assert.equal(reply.usage_metadata.total_tokens, 5);
  assert.equal(reply.response_metadata.finish_reason, "stop");
}

export async function check_stream() {
  assert.deepEqual(await texts(await chat.stream("one two")), ["one", " two"]);
}

export async function check_batch() {
  const replies = await chat.batch(["a", "b", "c"]);
  assert.deepEqual(replies.map((reply) => reply.content), ["a", "b", "c"]);
}

export async function check_structured_output() {
  const bird = { name: "polly wants", colour: "green" };
  for (const method of ["jsonSchema", "functionCalling"]) {
    assert.deepEqual(await chat.withStructuredOutput(Bird, { name: "bird", method }).invoke("x"), bird, method);
  }
}

export async function check_tools() {
  const able = chat.bindTools([weather]);
  const asked = new HumanMessage('<tool_call>{"name": "weather", "arguments": {"place": "here"}}</tool_call>');
  const reply = await able.invoke([asked]);
  const [call] = reply.tool_calls;
  assert.deepEqual([call.name, call.args], ["weather", { place: "here" }]);
  const result = new ToolMessage({ content: await weather.invoke(call.args), tool_call_id: call.id });
  assert.equal((await able.invoke([asked, reply, result])).content, "sunny");
  let streamed;
  for await (const chunk of await able.stream([asked])) streamed = streamed ? streamed.concat(chunk) : chunk;
  assert.deepEqual(streamed.tool_calls[0].args, { place: "here" });
}

export async function check_responses_api() {
  const responses = new ChatOpenAI({ ...PLACE, useResponsesApi: true });
  assert.equal((await responses.invoke("one two")).text, "one two");
  assert.equal((await texts(await responses.stream("one two"))).join(""), "one two");
}

export async function check_completions() {
  assert.equal(await new OpenAI(PLACE).invoke("one two"), "one two");
}

export async function check_embeddings() {
  const embeddings = new OpenAIEmbeddings(PLACE);
  assert.equal((await embeddings.embedQuery("ab")).length, 4);
  const many = Array.from({ length: 1500 }, (_, number) => `text ${number}`);
  assert.equal((await embeddings.embedDocuments(many)).length, 1500);
}

export async function check_errors() {
  const stranger = new ChatOpenAI({ ...PLACE, apiKey: "wrong" });
  await assert.rejects(() => stranger.invoke("x"), { status: 401 });
  await assert.rejects(() => new ChatOpenAI({ ...PLACE, model: "crow" }).invoke("x"), { status: 404 });
}

export async function check_a_client_that_leaves() {
  const before = (await parrot()).cancelled;
  for await (const _ of await chat.stream("hang on")) break;
  await waitForCancels(before + 1);
}
