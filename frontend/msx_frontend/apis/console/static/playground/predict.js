// Any model: a body as text, as JSON by its inputs, or as a file, to /predictions; the answer as it comes.

import { TIMED, call, curl, request, timing } from "../shared/api.js";
import { h } from "../shared/dom.js";
import "./answer.js";

const TYPES = ["application/json", "text/plain; charset=utf-8", "application/octet-stream"];
const MOST_VALUES = 64;

class Predict extends HTMLElement {
  connectedCallback() {
    this.kind = h("select", { id: "kind" }, TYPES.map((one) => h("option", { value: one }, one)));
    this.text = h("textarea", { class: "body", id: "body", spellcheck: "false" });
    this.file = h("input", { type: "file", id: "file", onchange: () => this.#preview() });
    this.preview = h("div");
    this.send = h("button", { class: "main", type: "submit" }, "Send");
    this.halt = h("button", { type: "button", disabled: true, onclick: () => this.stop() }, "Stop");
    this.answer = h("msx-answer");
    this.append(h("div", { class: "bench" },
      h("form", { class: "card stack", onsubmit: (event) => this.#ask(event) },
        h("label", {}, "Content type", this.kind), h("label", {}, "Body", this.text),
        h("label", {}, "or a file, which is sent as it is", this.file), this.preview,
        h("div", { class: "row" }, this.send, this.halt)),
      h("section", { class: "card stack", "aria-label": "Answer" }, h("h2", {}, "Answer"), this.answer)));
    this.#example();
  }

  stop() {
    this.abort?.abort();
  }

  /** Of a model that announces its inputs: a body in their shapes. */
  async #example() {
    try {
      const { inputs = [] } = await call("inference", "GET", `/v2/models/${encodeURIComponent(this.model)}`);
      if (inputs.length && !this.text.value) this.text.value = JSON.stringify({ inputs: inputs.map(example) }, null, 1);
    } catch {
      // Nothing is known of the model: the reader knows what it takes.
    }
  }

  #preview() {
    URL.revokeObjectURL(this.shown);
    const [file] = this.file.files;
    this.preview.replaceChildren();
    if (!file) return;
    if (file.type.startsWith("image/")) {
      this.shown = URL.createObjectURL(file);
      this.preview.append(h("img", { class: "preview", src: this.shown, alt: `The file ${file.name}` }));
    }
    this.preview.append(h("button", { type: "button", class: "link", onclick: () => {
      this.file.value = "";
      this.#preview();
    } }, "Send the text instead"));
  }

  async #ask(event) {
    event.preventDefault();
    const path = `/predictions/${encodeURIComponent(this.model)}`;
    const [file] = this.file.files;
    const type = file ? file.type || "application/octet-stream" : this.kind.value;
    this.#running(true);
    this.answer.begin(this.#line(path, type, file));
    try {
      const body = file ?? this.text.value;
      const reply = await request("inference", "POST", path, { body, headers: { "content-type": type, ...TIMED }, signal: this.abort.signal });
      await this.#read(reply);
    } catch (error) {
      this.answer.failed(error);
    } finally {
      this.#running(false);
    }
  }

  async #read(reply) {
    const kind = reply.headers.get("content-type") ?? "";
    const id = reply.headers.get("x-request-id") ?? "";
    if (kind.startsWith("image/")) {
      this.answer.put(h("img", { class: "preview", src: URL.createObjectURL(await reply.blob()), alt: "The answer" }));
      return this.answer.end(id, kind, timing(reply));
    }
    const decoder = new TextDecoder();
    for (const reader = reply.body.getReader(); ;) {
      const { value, done } = await reader.read();
      if (done) break;
      this.answer.add(decoder.decode(value, { stream: true }), value.length);
    }
    return this.answer.end(id, kind, timing(reply));
  }

  #line(path, type, file) {
    if (file) return curl("inference", "POST", path, { file: file.name });
    try {
      if (type.includes("json")) return curl("inference", "POST", path, { json: JSON.parse(this.text.value) });
    } catch {
      // The server says what is wrong with it.
    }
    return curl("inference", "POST", path, { file: "FILE" });
  }

  #running(on) {
    if (on) this.abort = new AbortController();
    this.send.disabled = on;
    this.halt.disabled = !on;
  }
}

/** As models/tensor_examples.py: zeros, but ones for a mask or a length, and small images. */
function example({ name, datatype, shape }) {
  const side = (axis) => (shape.length === 4 && axis > 1 ? 32 : 1);
  const sizes = shape.map((one, axis) => (one > 0 ? one : side(axis)));
  const count = sizes.reduce((product, one) => product * one, 1);
  const counts = /mask|len(gth)?s?$/i.test(name);
  const value = datatype === "BYTES" ? "" : datatype === "BOOL" ? counts : Number(counts);
  return { name, datatype, shape: sizes, data: count <= MOST_VALUES ? Array(count).fill(value) : [] };
}

customElements.define("msx-predict", Predict);
