// Batches and files of all keys: how far they are, and what cancels or deletes them.

import { h } from "../shared/dom.js";
import { NONE, age, bytes, count } from "../shared/format.js";
import { AskedList, tiles } from "./asked.js";

const BATCHES = "/management/batches";
const FILES = "/management/files";
const COLOURS = { completed: "good", failed: "bad", expired: "warn", cancelled: "warn", cancelling: "warn" };
const OPEN = ["validating", "in_progress"];
const OFF = "Off: set jobs=true in config.properties, and start the server again.";

class Batches extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.tiles = h("div", { class: "tiles" });
    const listed = { query: () => ({}), items: (page) => page.data, more: (page) => page.has_more };
    this.batches = new AskedList({ ...listed,
      path: BATCHES, name: "Batches", most: 100, empty: "There are no batches.", failed: "The batches cannot be shown",
      columns: (now) => this.#ofBatches(now) });
    this.files = new AskedList({ ...listed,
      path: FILES, name: "Files", most: 1000, empty: "There are no files.", failed: "The files cannot be shown",
      columns: (now) => this.#ofFiles(now) });
    this.append(h("div", { class: "stack" }, h("h1", {}, "Batches"), h("p", { class: "quiet" },
      "Files whose lines are requests, which run while clients that wait leave room."),
    this.tiles, card("batches", "The newest", this.batches), card("files", "Files", this.files)));
  }

  update() {
    const counts = this.store.part("batches");
    if (!counts) {
      this.batches.say(OFF);
      return;
    }
    const { states, waiting, running, ended, files, size } = counts;
    const open = Object.keys(states).filter((one) => !["completed", "failed", "expired", "cancelled"].includes(one));
    tiles(this.tiles, [["Batches that run or wait", count(open.reduce((sum, one) => sum + states[one], 0))],
      ["Lines that wait", count(waiting)], ["Lines that run", count(running)], ["Lines done", count(ended.done)],
      ["Lines failed", count(ended.failed)], ["Files", count(files)], ["On the disk", bytes(size)]]);
    this.batches.update(counts);
    this.files.update([files, size, states]);
  }

  #ofBatches(now) {
    return [
      { name: "Batch", first: true, value: (one) => h("code", {}, one.id) },
      { name: "Status", first: true, value: (one) => h("span", { class: `badge ${COLOURS[one.status] ?? "busy"}` }, one.status) },
      { name: "Lines", number: true, value: (one) => progress(one.request_counts) },
      { name: "Failed", number: true, value: (one) => count(one.request_counts.failed) },
      { name: "Age", number: true, value: (one) => age(now - one.created_at) },
      { name: "Key", value: (one) => one.key || NONE },
      { name: "Endpoint", value: (one) => one.endpoint },
      { name: "Action", value: (one) => (OPEN.includes(one.status) ? this.#canceller(one.id) : NONE) },
    ];
  }

  #canceller(id) {
    return this.batches.button({
      id, word: "Cancel", danger: true, method: "POST", path: `${BATCHES}/${encodeURIComponent(id)}/cancel`,
      question: `Cancel ${id}? What was answered is kept.`, said: (reply) => `${id}: ${reply.status}`,
    });
  }

  #ofFiles(now) {
    return [
      { name: "File", first: true, value: (one) => h("code", {}, one.id) },
      { name: "Name", first: true, value: (one) => one.filename || NONE },
      { name: "Purpose", value: (one) => one.purpose },
      { name: "Size", number: true, value: (one) => bytes(one.bytes) },
      { name: "Age", number: true, value: (one) => age(now - one.created_at) },
      { name: "Key", value: (one) => one.key || NONE },
      { name: "Action", value: (one) => this.#remover(one.id) },
    ];
  }

  #remover(id) {
    return this.files.button({
      id, word: "Delete", danger: true, method: "DELETE", path: `${FILES}/${encodeURIComponent(id)}`,
      question: `Delete ${id}?`, said: () => `${id}: deleted`,
    });
  }
}

function card(id, title, list) {
  return h("section", { class: "card stack", "aria-labelledby": id }, h("h2", { id }, title), list.element);
}

/** "3 of 10": lines that have an outcome. */
function progress({ total, completed, failed }) {
  return total ? `${count(completed + failed)} of ${count(total)}` : NONE;
}

customElements.define("msx-batches", Batches);
