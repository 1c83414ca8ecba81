// Texts as vectors, and how near they are to the first one.

import { TIMED, curl, request, timing } from "../shared/api.js";
import { h } from "../shared/dom.js";
import { table } from "../shared/elements.js";
import "./answer.js";

const PATH = "/v1/embeddings";

class Embed extends HTMLElement {
  connectedCallback() {
    this.text = h("textarea", { class: "body", id: "texts", required: true, placeholder: "A line a text" });
    this.answer = h("msx-answer");
    this.send = h("button", { class: "main", type: "submit" }, "Embed");
    this.append(h("div", { class: "bench" },
      h("form", { class: "card stack", onsubmit: (event) => this.#ask(event) },
        h("label", {}, "Texts, a line each", this.text), h("div", {}, this.send)),
      h("section", { class: "card stack", "aria-label": "Answer" }, h("h2", {}, "Answer"), this.answer)));
  }

  async #ask(event) {
    event.preventDefault();
    const input = this.text.value.split("\n").filter((line) => line.trim());
    const json = { model: this.model, input };
    this.send.disabled = true;
    this.answer.begin(curl("inference", "POST", PATH, { json }));
    try {
      const reply = await request("inference", "POST", PATH, { json, headers: TIMED });
      const { data, usage } = await reply.json();
      const vectors = [...data].sort((one, other) => one.index - other.index).map((one) => one.embedding);
      this.answer.put(this.#table(input, vectors));
      const sizes = `${vectors[0]?.length ?? 0} numbers each · ${usage?.prompt_tokens ?? 0} tokens`;
      this.answer.end(reply.headers.get("x-request-id") ?? "", sizes, timing(reply));
    } catch (error) {
      this.answer.failed(error);
    } finally {
      this.send.disabled = false;
    }
  }

  #table(texts, vectors) {
    const rows = texts.map((text, place) => ({ text, vector: vectors[place] }));
    return table("Vectors", [
      { name: "Text", value: (row) => row.text },
      { name: "Nearness to the first", number: true, value: (row) => cosine(vectors[0], row.vector).toFixed(4) },
      { name: "Vector", value: (row) => `${row.vector.slice(0, 4).map((one) => one.toFixed(4)).join(", ")}, …` },
    ], rows);
  }
}

function cosine(one, other) {
  const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other) || 1);
}

customElements.define("msx-embed", Embed);
