// The last slow and failed requests: where each millisecond went.

import { call } from "../shared/api.js";
import { h, show, svg } from "../shared/dom.js";
import { notice, table } from "../shared/elements.js";
import { clock, millis } from "../shared/format.js";

export const PHASES = [["parse", "parse"], ["queue", "queue"], ["wait", "batch wait"], ["worker", "worker"], ["reply", "reply"]];

/** Of one version, or of all: asks again when the server says that there is a newer one. */
export class TraceList extends HTMLElement {
  update(store, version) {
    const versions = version ? [version] : store.versions;
    const newest = Math.max(0, ...versions.map((one) => one.traces));
    if (newest === this.newest || this.asking) return;
    this.newest = newest;
    this.#ask(version ? { model: version.modelName, version: version.modelVersion } : {});
  }

  async #ask(query) {
    this.asking = true;
    try {
      const { slow, failed } = await call("management", "GET", "/console/traces", { query });
      show(this, [slow, failed], () => h("div", { class: "stack" },
        h("section", { class: "card stack" }, h("h2", {}, "Failed"), list("Failed requests", failed, "No request has failed.")),
        h("section", { class: "card stack" }, h("h2", {}, "Slow"), list("Slow requests", slow, "No request was slow."))));
    } catch (error) {
      this.newest = -1;
      show(this, error.message, () => notice(`The traces cannot be shown: ${error.message}`, "bad"));
    }
    this.asking = false;
  }
}

function list(caption, traces, empty) {
  return table(caption, [
    { name: "Ended", first: true, value: (one) => h("time", {}, clock(one.ended)) },
    { name: "Model", first: true, value: (one) => `${one.model} ${one.version}` },
    { name: "Status", first: true, value: (one) => String(one.status) },
    { name: "Took", number: true, first: true, value: (one) => millis(one.total) },
    { name: "Where", wide: true, value: where },
    { name: "Batch", number: true, value: (one) => one.batch || "–" },
    { name: "Request", wide: true, value: (one) => h("span", { class: "small" }, h("code", {}, one.id), one.error ? h("p", {}, one.error) : null) },
  ], traces, empty);
}

function where(trace) {
  const known = PHASES.map(([name, text], at) => ({ text, at, value: trace[name] })).filter((one) => one.value !== null);
  const whole = known.reduce((sum, one) => sum + one.value, 0) || 1;
  let x = 0;
  const bars = known.map(({ at, value }) => {
    const width = (value / whole) * 100;
    const bar = svg("rect", { class: `phase${at}`, x, width, y: 0, height: 10 });
    x += width;
    return bar;
  });
  return [svg("svg", { class: "phases", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, bars),
    h("ul", { class: "phaseList small" }, known.filter(({ value }) => value >= 0.005).map(({ text, at, value }) =>
      h("li", {}, h("i", { class: `phase${at}` }), `${text} ${millis(value)}`)))];
}

class Traces extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.list = document.createElement("msx-trace-list");
    this.append(h("div", { class: "stack" }, h("h1", {}, "Traces"), h("p", { class: "quiet" },
      "A slow request took longer than 99 % of those of the last minute of its model. Of each version the last 20 slow and 20 failed ones are kept."),
    this.list));
  }

  update() {
    this.list.update(this.store);
  }
}

customElements.define("msx-trace-list", TraceList);
customElements.define("msx-traces", Traces);
