// A list of the server that is asked for again when its counts have changed, and what is done to its items.

import { call } from "../shared/api.js";
import { h, show } from "../shared/dom.js";
import { notice, table } from "../shared/elements.js";

const KIND = "management";
const PAGE = 50;

/** `of`: {path, query(), name, empty, items(page), more(page), most, columns(now), failed}: what is asked for, and how
 * it is shown. */
export class AskedList {
  constructor(of) {
    this.of = of;
    this.most = PAGE;
    this.told = h("div", { "aria-live": "polite" });
    this.list = h("div", {});
    this.element = h("div", {}, this.told, this.list);
  }

  /** Asks again where the counts are others than the last time. */
  update(counts) {
    const now = JSON.stringify(counts);
    if (now !== this.counts) {
      this.counts = now;
      this.ask();
    } else this.#draw();
  }

  /** One call at a time: what changes meanwhile is asked for behind it. */
  async ask() {
    this.wanted = true;
    if (this.asking) return;
    this.asking = true;
    while (this.wanted) {
      this.wanted = false;
      try {
        this.page = await call(KIND, "GET", this.of.path, { query: { limit: this.most, ...this.of.query() } });
        this.#draw();
      } catch (error) {
        this.told.replaceChildren(notice(`${this.of.failed}: ${error.message}`, "bad"));
      }
    }
    this.asking = false;
  }

  /** Instead of the list. */
  say(text) {
    show(this.list, text, () => notice(text, "warn"));
  }

  /** Ages are of the last ten seconds: what a reader has marked stays as long. */
  #draw() {
    if (!this.page) return;
    const now = Date.now() / 1000;
    const { name, empty, items, more, most, columns } = this.of;
    show(this.list, [this.page, Math.floor(now / 10)], () => [
      table(name, columns(now), items(this.page), empty),
      more(this.page) && this.most < most ? h("p", {}, h("button", { type: "button", id: `more-${name.toLowerCase()}`,
        onclick: () => {
          this.most = Math.min(this.most * 4, most);
          this.ask();
        } }, "Show more")) : null]);
  }

  /** A button that does something to an item when its reader has confirmed it. `said` tells the reply. */
  button({ id, word, danger, question, method, path, said }) {
    return h("button", { type: "button", class: danger ? "danger small" : "small", id: `act-${id}`,
      "aria-label": `${word} ${id}`, onclick: () => this.#act(question, method, path, said) }, word);
  }

  async #act(question, method, path, said) {
    if (!window.confirm(question)) return;
    try {
      this.told.replaceChildren(notice(said(await call(KIND, method, path)), "good"));
    } catch (error) {
      this.told.replaceChildren(notice(error.message, "bad"));
    }
    await this.ask();
    if (document.activeElement === document.body) this.list.querySelector("[tabindex]")?.focus();
  }
}

/** Figures in a row: names and values. */
export function tiles(parent, told) {
  show(parent, told, () => told.map(([name, value]) =>
    h("div", { class: "tile" }, h("span", { class: "quiet small" }, name), h("b", {}, value))));
}
