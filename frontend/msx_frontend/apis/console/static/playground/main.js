// The frame of the playground: which model, and in which way it is asked.

import { ApiError, call, needsKey } from "../shared/api.js";
import { h, show } from "../shared/dom.js";
import { notice, skipLink } from "../shared/elements.js";
import { compare } from "../shared/format.js";
import "./chat.js";
import "./embed.js";
import "./predict.js";

const WAYS = { predict: "Predict", chat: "Chat", embed: "Embed" };

class Playground extends HTMLElement {
  connectedCallback() {
    this.body = h("div", { class: "stack" });
    this.main = h("main", { id: "main", tabindex: "-1" }, h("div", { class: "stack" }, h("h1", {}, "Playground"), this.body));
    this.replaceChildren(skipLink(this.main), this.#top(), this.main);
    this.addEventListener("key", () => this.#load().then(() => this.models?.focus()));
    addEventListener("hashchange", () => this.#show());
    this.#load();
  }

  #top() {
    const console = this.#console();
    return h("header", { class: "top" }, h("div", { class: "row spread" },
      h("a", { class: "brand", href: "#/" }, "MSX playground"),
      h("nav", { "aria-label": "Pages" }, h("a", { href: "docs", target: "_blank", rel: "noopener" }, "API ↗"),
        console && h("a", { href: console, target: "_blank", rel: "noopener" }, "Console ↗"))));
  }

  /** On the management listener: another origin, with another key. */
  #console() {
    const address = document.documentElement.dataset.console;
    if (!address) return null;
    const url = new URL(address.replace("0.0.0.0", location.hostname).replace("[::]", location.hostname));
    return `${url.origin}/console`;
  }

  async #load() {
    if (needsKey("inference")) return this.#askKey("");
    this.body.replaceChildren(h("p", { class: "loading", role: "status" }, "Asking for the models…"));
    try {
      const { models } = await call("inference", "GET", "/playground/models");
      this.ways = new Map(models.map((one) => [one.name, one.ways]));
      this.#begin([...this.ways.keys()].sort(compare));
    } catch (error) {
      if (error instanceof ApiError && error.wantsKey) this.#askKey(error.message);
      else this.body.replaceChildren(notice(error.message, "bad"),
        h("div", {}, h("button", { type: "button", onclick: () => this.#load() }, "Try again")));
    }
  }

  #askKey(refused) {
    this.body.replaceChildren(h("msx-key-form", { kind: "inference", refused }));
    this.body.firstChild.focus();
  }

  #begin(names) {
    if (!names.length) {
      this.body.replaceChildren(notice("No model is registered here. The console registers one, or msx-serve --models."));
      return;
    }
    this.names = names;
    this.models = h("select", { id: "model", onchange: () => go("", this.models.value) },
      names.map((one) => h("option", { value: one }, one)));
    this.choice = h("div", { class: "row" });
    this.place = h("div", {});
    this.body.replaceChildren(h("div", { class: "row" }, h("label", {}, "Model", this.models),
      h("fieldset", {}, h("legend", { class: "small quiet" }, "Way"), this.choice)), this.place);
    this.#show();
  }

  /** "#/chat/name" is a way and a model. A model is asked in the first of its ways, unless the address says another. */
  #show() {
    if (!this.names) return;
    const [wanted = "", name = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    const model = this.ways.has(name) ? name : this.names[0];
    const ways = this.ways.get(model);
    const way = ways.includes(wanted) ? wanted : ways[0];
    history.replaceState(null, "", addressOf(way, model));
    this.models.value = model;
    show(this.choice, ways, () => ways.map((one) => h("label", { class: "inline" }, h("input", {
      id: `way-${one}`, type: "radio", name: "way", value: one, onchange: () => go(one, this.models.value) }), WAYS[one])));
    this.choice.querySelector(`#way-${way}`).checked = true;
    this.#open(way, model);
  }

  #open(way, model) {
    this.view?.stop?.();
    this.view = document.createElement(`msx-${way}`);
    this.view.model = model;
    this.place.replaceChildren(this.view);
    document.title = `${model} – MSX playground`;
  }
}

function addressOf(way, model) {
  return `#/${way}/${encodeURIComponent(model)}`;
}

function go(way, model) {
  location.hash = addressOf(way, model);
}

customElements.define("msx-playground", Playground);
