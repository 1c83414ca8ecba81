// Requests that were deferred, of all keys: how they stand, and what cancels them.

import { h } from "../shared/dom.js";
import { NONE, age, bytes, count } from "../shared/format.js";
import { AskedList, tiles } from "./asked.js";

const PATH = "/management/jobs";
const STATES = ["", "queued", "running", "done", "cancelled"];
const COLOURS = { done: "good", cancelled: "warn" };
const OFF = "Off: set jobs=true in config.properties, and start the server again.";

class Jobs extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.tiles = h("div", { class: "tiles" });
    this.state = h("select", { id: "state", onchange: () => this.jobs.ask() },
      STATES.map((one) => h("option", { value: one }, one || "all")));
    this.jobs = new AskedList({
      path: PATH, name: "Jobs", most: 1000, empty: "There are no such jobs.", failed: "The jobs cannot be shown",
      query: () => (this.state.value ? { state: this.state.value } : {}),
      items: (page) => page.jobs, more: (page) => page.next, columns: (now) => this.#columns(now),
    });
    this.append(h("div", { class: "stack" }, h("h1", {}, "Jobs"), h("p", { class: "quiet" },
      "Requests with “Prefer: respond-async”, which are answered later. Each is on the server's disk."),
    this.tiles, h("section", { class: "card stack", "aria-labelledby": "jobs" },
      h("div", { class: "row spread" }, h("h2", { id: "jobs" }, "The newest"), h("label", { class: "inline" }, "State", this.state)),
      this.jobs.element)));
  }

  update() {
    const counts = this.store.part("jobs");
    if (!counts) {
      this.jobs.say(OFF);
      return;
    }
    const { queued, running, ended, size, callbacks } = counts;
    tiles(this.tiles, [["Waiting", count(queued)], ["Running", count(running)], ["Done", count(ended.done)],
      ["Failed", count(ended.failed)], ["Cancelled", count(ended.cancelled)], ["Callbacks that wait", count(callbacks)],
      ["On the disk", bytes(size)]]);
    this.jobs.update(counts);
  }

  #columns(now) {
    return [
      { name: "Job", first: true, value: (one) => h("code", {}, one.id) },
      { name: "State", first: true, value: (one) => stateOf(one) },
      { name: "Age", number: true, value: (one) => age(now - one.created) },
      { name: "Key", value: (one) => one.key || NONE },
      { name: "Path", value: (one) => one.path },
      { name: "Callback", value: (one) => callbackOf(one.callback) },
      { name: "Action", value: (one) => this.#remover(one) },
    ];
  }

  #remover({ id, state }) {
    const open = state === "queued" || state === "running";
    return this.jobs.button({
      id, word: open ? "Cancel" : "Forget", danger: open, method: "DELETE", path: `${PATH}/${encodeURIComponent(id)}`,
      question: open ? `Cancel ${id}? It is not answered then.` : `Forget ${id}? Its reply is removed.`,
      said: (reply) => `${id}: ${reply.state}`,
    });
  }
}

function stateOf({ state, status, place }) {
  const failed = status >= 400 && state === "done";
  const more = state === "queued" && place ? ` (${place} before it)` : failed ? ` with ${status}` : "";
  return h("span", { class: `badge ${failed ? "bad" : COLOURS[state] ?? "busy"}` }, state + more);
}

function callbackOf(callback) {
  if (!callback) return NONE;
  const told = callback.error ?? (callback.status ? `HTTP ${callback.status}` : "");
  return [callback.state, callback.tries ? `, tried ${callback.tries}×` : "", told ? `: ${told}` : ""].join("");
}

customElements.define("msx-jobs", Jobs);
