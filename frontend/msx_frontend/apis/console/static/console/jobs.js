// Requests that were deferred, of all keys: how they stand, and what cancels them.

import { call } from "../shared/api.js";
import { h, show } from "../shared/dom.js";
import { notice, table } from "../shared/elements.js";
import { NONE, age, bytes, count } from "../shared/format.js";

const KIND = "management";
const PATH = "/management/jobs";
const PAGE = 50;
const STATES = ["", "queued", "running", "done", "cancelled"];
const COLOURS = { done: "good", cancelled: "warn" };

class Jobs extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.most = PAGE;
    this.tiles = h("div", { class: "tiles" });
    this.told = h("div", { "aria-live": "polite" });
    this.list = h("div", {});
    this.state = h("select", { id: "state", onchange: () => this.#ask() },
      STATES.map((one) => h("option", { value: one }, one || "all")));
    this.append(h("div", { class: "stack" }, h("h1", {}, "Jobs"), h("p", { class: "quiet" },
      "Requests with “Prefer: respond-async”, which are answered later. Each is on the server's disk."),
    this.tiles, h("section", { class: "card stack", "aria-labelledby": "jobs" },
      h("div", { class: "row spread" }, h("h2", { id: "jobs" }, "The newest"), h("label", { class: "inline" }, "State", this.state)),
      h("div", {}, this.told, this.list))));
  }

  /** Asks for the list again when the server's counts have changed. */
  update() {
    const counts = this.store.part("jobs");
    if (!counts) {
      show(this.list, null, () => notice("Off: set jobs=true in config.properties, and start the server again.", "warn"));
      return;
    }
    this.#tiles(counts);
    const now = JSON.stringify(counts);
    if (now !== this.counts) {
      this.counts = now;
      this.#ask();
    } else this.#draw();
  }

  #tiles({ queued, running, ended, size, callbacks }) {
    const told = [["Waiting", count(queued)], ["Running", count(running)], ["Done", count(ended.done)],
      ["Failed", count(ended.failed)], ["Cancelled", count(ended.cancelled)], ["Callbacks that wait", count(callbacks)],
      ["On the disk", bytes(size)]];
    show(this.tiles, told, () => told.map(([name, value]) =>
      h("div", { class: "tile" }, h("span", { class: "quiet small" }, name), h("b", {}, value))));
  }

  /** One call at a time: what changes meanwhile is asked for behind it. */
  async #ask() {
    this.wanted = true;
    if (this.asking) return;
    this.asking = true;
    while (this.wanted) {
      this.wanted = false;
      try {
        const state = this.state.value;
        this.page = await call(KIND, "GET", PATH, { query: { limit: this.most, ...(state && { state }) } });
        this.#draw();
      } catch (error) {
        this.told.replaceChildren(notice(`The jobs cannot be shown: ${error.message}`, "bad"));
      }
    }
    this.asking = false;
  }

  /** Ages are of the last ten seconds: what a reader has marked stays as long. */
  #draw() {
    if (!this.page) return;
    const now = Date.now() / 1000;
    show(this.list, [this.page, Math.floor(now / 10)], () => [
      table("Jobs", this.#columns(now), this.page.jobs, "There are no such jobs."),
      this.page.next && this.most < 1000 ? h("p", {}, h("button", { type: "button", id: "more", onclick: () => {
        this.most = Math.min(this.most * 4, 1000);
        this.#ask();
      } }, "Show more")) : null]);
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

  #remover(job) {
    const open = job.state === "queued" || job.state === "running";
    const word = open ? "Cancel" : "Forget";
    return h("button", { type: "button", class: open ? "danger small" : "small", id: `remove-${job.id}`, "aria-label": `${word} ${job.id}`,
      onclick: () => this.#remove(job.id, open) }, word);
  }

  async #remove(id, open) {
    const asked = open ? `Cancel ${id}? It is not answered then.` : `Forget ${id}? Its reply is removed.`;
    if (!window.confirm(asked)) return;
    try {
      const { state } = await call(KIND, "DELETE", `${PATH}/${encodeURIComponent(id)}`);
      this.told.replaceChildren(notice(`${id}: ${state}`, "good"));
    } catch (error) {
      this.told.replaceChildren(notice(error.message, "bad"));
    }
    await this.#ask();
    if (document.activeElement === document.body) this.list.querySelector("[tabindex]")?.focus();
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
