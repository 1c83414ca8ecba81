// A conversation with a language model, streamed; with a temperature, tools and a JSON schema.

import { TIMED, curl, events, timing } from "../shared/api.js";
import { h } from "../shared/dom.js";
import { notice } from "../shared/elements.js";
import "./answer.js";

const PATH = "/v1/chat/completions";

class Chat extends HTMLElement {
  connectedCallback() {
    this.messages = [];
    this.talk = h("div", { class: "talk", role: "log", "aria-label": "Conversation", tabindex: "0" });
    this.text = h("textarea", { id: "message", rows: 3, required: true, onkeydown: (event) => this.#typed(event) });
    this.system = h("textarea", { id: "system", rows: 2 });
    this.temperature = h("input", { id: "temperature", type: "number", min: 0, max: 2, step: 0.1, placeholder: "default" });
    this.most = h("input", { id: "most", type: "number", min: 1, value: "256" });
    this.tools = h("textarea", { id: "tools", rows: 3, spellcheck: "false", placeholder: '[{"type": "function", "function": {…}}]' });
    this.schema = h("textarea", { id: "schema", rows: 3, spellcheck: "false", placeholder: '{"type": "object", …}' });
    this.send = h("button", { class: "main", type: "submit" }, "Send");
    this.halt = h("button", { type: "button", disabled: true, onclick: () => this.stop() }, "Stop");
    this.said = h("div", { "aria-live": "polite" });
    this.append(h("div", { class: "bench" }, this.#form(), this.#settings()));
  }

  stop() {
    this.abort?.abort();
  }

  #form() {
    return h("form", { class: "card stack", onsubmit: (event) => this.#ask(event) }, this.talk, this.said,
      h("label", {}, "Message (Ctrl+Enter sends it)", this.text),
      h("div", { class: "row" }, this.send, this.halt,
        h("button", { type: "button", class: "link", onclick: () => this.#anew() }, "Begin anew")));
  }

  #settings() {
    this.line = h("msx-curl");
    return h("section", { class: "card stack", "aria-label": "Settings" }, h("h2", {}, "Settings"),
      h("label", {}, "System message", this.system),
      h("div", { class: "row" }, h("label", {}, "Temperature", this.temperature), h("label", {}, "Most tokens", this.most)),
      h("label", {}, "Tools (JSON, OpenAI's form)", this.tools),
      h("label", {}, "JSON schema of the answer", this.schema), this.line);
  }

  #typed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send.form.requestSubmit();
  }

  #anew() {
    this.stop();
    this.messages = [];
    this.talk.replaceChildren();
    this.said.replaceChildren();
  }

  /** Throws SyntaxError for JSON that is none. */
  #body() {
    const system = this.system.value.trim();
    const body = { model: this.model, stream: true, stream_options: { include_usage: true },
      messages: [...(system ? [{ role: "system", content: system }] : []), ...this.messages] };
    if (this.temperature.value) body.temperature = Number(this.temperature.value);
    if (this.most.value) body.max_tokens = Number(this.most.value);
    if (this.tools.value.trim()) body.tools = JSON.parse(this.tools.value);
    if (this.schema.value.trim()) {
      body.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(this.schema.value) } };
    }
    return body;
  }

  async #ask(event) {
    event.preventDefault();
    this.said.replaceChildren();
    this.messages.push({ role: "user", content: this.text.value });
    let body;
    try {
      body = this.#body();
    } catch (error) {
      this.messages.pop();
      this.said.replaceChildren(notice(`Tools or schema are not JSON: ${error.message}`, "bad"));
      return;
    }
    this.talk.append(h("div", { class: "said user" }, this.text.value));
    this.text.value = "";
    this.line.line = curl("inference", "POST", PATH, { json: body });
    await this.#answer(body);
  }

  async #answer(body) {
    const bubble = h("div", { class: "said assistant" });
    const times = h("p", { class: "small quiet" }, "Waiting…");
    this.talk.append(bubble, times);
    this.#running(true);
    const told = { text: "", calls: [], started: performance.now(), first: 0, tokens: 0, finish: "", spent: "", id: "" };
    const opened = (reply) => Object.assign(told, { spent: timing(reply), id: reply.headers.get("x-request-id") ?? "" });
    const asked = { method: "POST", json: body, headers: TIMED, signal: this.abort.signal, opened };
    try {
      for await (const { data } of events("inference", PATH, asked)) {
        if (data === "[DONE]") break;
        this.#piece(JSON.parse(data), told, bubble, times);
      }
      this.#tell(times, told, true);
    } catch (error) {
      if (error.name === "AbortError") this.#tell(times, { ...told, finish: "stopped" }, true);
      else times.replaceWith(notice(error.message, "bad"));
    } finally {
      this.#running(false);
      if (told.text || told.calls.length) this.messages.push({ role: "assistant", content: told.text });
    }
  }

  #piece(event, told, bubble, times) {
    if (event.error) throw new Error(event.error.message);
    if (event.usage) told.tokens = event.usage.completion_tokens;
    const [choice] = event.choices ?? [];
    if (!choice) return;
    told.first ||= performance.now();
    told.finish = choice.finish_reason ?? told.finish;
    const piece = choice.delta?.content ?? "";
    const called = choice.delta?.tool_calls ?? [];
    for (const one of called) {
      told.calls.push(one);
      bubble.append(`${one.function?.name ?? ""}${one.function?.arguments ?? ""}`);
    }
    told.text += piece;
    bubble.append(piece);
    this.#tell(times, told, false);
  }

  #tell(times, told, ended) {
    const now = performance.now();
    const seconds = (now - told.started) / 1000;
    const rate = told.tokens ? `${told.tokens} tokens, ${(told.tokens / seconds).toFixed(1)} a second` : "";
    times.textContent = [told.first ? `first token after ${(told.first - told.started).toFixed(0)} ms` : "",
      ended ? `${seconds.toFixed(2)} s` : "", rate, ended ? told.finish : "", told.spent,
      told.id && `request ${told.id}`].filter(Boolean).join(" · ");
  }

  #running(on) {
    if (on) this.abort = new AbortController();
    this.send.disabled = on;
    this.halt.disabled = !on;
  }
}

customElements.define("msx-chat", Chat);
