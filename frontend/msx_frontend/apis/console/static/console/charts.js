// The charts of one version, or of the whole server: the hour is asked for once, then grows with each point.

import { call } from "../shared/api.js";
import { h, show } from "../shared/dom.js";
import { notice } from "../shared/elements.js";
import { count, millis, percent } from "../shared/format.js";
import "./chart.js";

const LEAST = 30;

const rate = (value) => `${count(value)}/s`;
const CHARTS = [
  { title: "Requests", format: count, lines: { requests: "answered", refused: "4xx", failed: "5xx" } },
  { title: "Latency", format: millis, lines: { p50: "p50", p99: "p99" } },
  { title: "Queue and workers", format: count, lines: { queued: "waiting", running: "running", workers: "workers" } },
  { title: "Batch size", format: count, lines: { batch: "requests per batch" } },
  { title: "Tokens", format: rate, lines: { tokens: "generated" }, texts: true },
  { title: "Cache of keys and values", format: percent, lines: { kv: "used" }, texts: true },
];

class Charts extends HTMLElement {
  /** `version` is that of the store, or undefined for the whole server. */
  update(store, version) {
    this.store = store;
    this.version = version;
    const figures = store.figures(version);
    if (!this.asked) this.#ask();
    else if (this.fields && figures && figures.number > this.number) this.#add(figures);
  }

  async #ask() {
    this.asked = true;
    const query = this.version ? { model: this.version.modelName, version: this.version.modelVersion } : {};
    try {
      const { fields, number, ended } = await call("management", "GET", "/console/history", { query });
      [this.fields, this.number, this.ended] = [fields, number, ended];
      if (!Object.keys(fields).length) this.#none();
      this.#draw();
    } catch (error) {
      this.asked = false;
      this.replaceChildren(notice(`The charts cannot be shown: ${error.message}`, "bad"));
    }
  }

  #none() {
    const { points, fields } = this.store.part("server").history;
    this.fields = Object.fromEntries(fields.map((name) => [name, Array(points).fill(null)]));
  }

  #add(figures) {
    for (const [name, values] of Object.entries(this.fields)) {
      for (let missed = this.number + 1; missed < figures.number; missed += 1) values.push(null);
      values.push(figures[name]);
      values.splice(0, values.length - this.store.part("server").history.points);
    }
    [this.number, this.ended] = [figures.number, figures.at];
    this.#draw();
  }

  /** Where the drawn part begins: at the first point that is known, five minutes ago or earlier. */
  #begin() {
    const known = Math.min(...Object.values(this.fields).map((values) => {
      const first = values.findIndex((value) => value !== null);
      return first < 0 ? values.length : first;
    }));
    return Math.max(0, Math.min(known, this.fields.requests.length - LEAST));
  }

  #draw() {
    const { every } = this.store.part("server").history;
    const texts = [...this.fields.tokens, ...this.fields.kv].some((value) => value);
    const wanted = CHARTS.filter((one) => texts || !one.texts);
    show(this, wanted.map((one) => one.title), () => h("div", { class: "charts" },
      wanted.map(() => document.createElement("msx-chart"))));
    const from = this.#begin();
    [...this.querySelectorAll("msx-chart")].forEach((chart, at) => {
      const { title, format, lines } = wanted[at];
      const named = Object.entries(lines).map(([field, name]) => ({ name, values: this.fields[field].slice(from) }));
      chart.draw({ title, format, lines: named, ended: this.ended, every });
    });
  }
}

customElements.define("msx-charts", Charts);
