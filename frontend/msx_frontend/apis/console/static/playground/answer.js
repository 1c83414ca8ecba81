// What was answered: <msx-answer> with the text as it comes, how long it took, and the request's id.

import { h } from "../shared/dom.js";
import { notice } from "../shared/elements.js";
import "../shared/elements.js";

const MOST = 2_000_000;

class Answer extends HTMLElement {
  connectedCallback() {
    this.setAttribute("aria-live", "polite");
    this.clear();
  }

  clear() {
    this.replaceChildren(h("p", { class: "quiet answer" }, "The answer will stand here."));
  }

  /** `curl`: the line that asks the same. */
  begin(curl) {
    this.started = performance.now();
    this.first = 0;
    this.size = 0;
    this.pre = h("pre", { class: "answer", tabindex: "0", "aria-label": "Answer" });
    this.times = h("p", { class: "small quiet", role: "status" }, "Waiting…");
    const line = h("msx-curl");
    this.replaceChildren(this.times, this.pre, line);
    line.line = curl;
  }

  add(text, bytes = text.length) {
    this.first ||= performance.now();
    this.size += bytes;
    if (this.pre.textContent.length < MOST) this.pre.append(text);
    this.#tell("");
  }

  put(node) {
    this.first ||= performance.now();
    this.pre.replaceWith(node);
  }

  /** `spent`: where the server's part of the time went. */
  end(id = "", more = "", spent = "") {
    this.first ||= performance.now();
    this.#tell([spent, more, id && `request ${id}`].filter(Boolean).join(" · "), performance.now());
  }

  failed(error) {
    if (error.name === "AbortError") return this.#tell("stopped", performance.now());
    this.times.replaceWith(notice(error.status ? `${error.status}: ${error.message}` : error.message, "bad"));
  }

  #tell(more, now = 0) {
    const first = `first byte after ${ms(this.first - this.started)}`;
    const whole = now ? `whole answer after ${ms(now - this.started)}` : "";
    this.times.textContent = [this.first ? first : "", whole, this.size ? `${this.size.toLocaleString()} bytes` : "", more]
      .filter(Boolean).join(" · ");
  }
}

function ms(value) {
  return value < 10_000 ? `${value.toFixed(1)} ms` : `${(value / 1000).toFixed(1)} s`;
}

customElements.define("msx-answer", Answer);
