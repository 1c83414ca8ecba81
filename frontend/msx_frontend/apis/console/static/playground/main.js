// The frame of the playground: which model, and in which way it is asked.

import { ApiError, call, needsKey } from "../shared/api.js";
import { h } from "../shared/dom.js";
import "../shared/elements.js";
import { notice } from "../shared/elements.js";
import "./chat.js";
import "./embed.js";
import "./predict.js";

const WAYS = { predict: "Predict", chat: "Chat", embed: "Embed" };

class Playground extends HTMLElement {
  connectedCallback() {
    this.body = h("div", { class: "stack" });
    this.main = h("main", { id: "main", tabindex: "-1" }, h("div", { class: "stack" }, h("h1", {}, "Playground"), this.body));
    this.replaceChildren(this.#top(), this.main);
    this.addEventListener("key", () => this.#load());
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
      const [all, texts] = await Promise.all([call("inference", "GET", "/v2/models"), call("inference", "GET", "/v1/models")]);
      this.models = [...all.models].sort();
      this.texts = new Set((texts.data ?? []).map((one) => one.id));
      this.#show();
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

  /** "#/chat/name" is a way and a model. */
  get place() {
    const [way = "", model = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    return { way, model };
  }

  #show() {
    if (!this.models) return;
    if (!this.models.length) {
      this.body.replaceChildren(notice("No model is registered here. The console registers one, or msx-serve --models."));
      return;
    }
    const model = this.models.includes(this.place.model) ? this.place.model : this.models[0];
    const way = WAYS[this.place.way] ? this.place.way : this.texts.has(model) ? "chat" : "predict";
    const view = document.createElement(`msx-${way}`);
    view.model = model;
    this.view?.stop?.();
    this.view = view;
    this.body.replaceChildren(this.#choice(model, way), view);
    document.title = `${model} – MSX playground`;
  }

  #choice(model, way) {
    const go = (next) => (location.hash = `#/${next.way ?? way}/${encodeURIComponent(next.model ?? model)}`);
    const models = h("select", { id: "model", onchange: (event) => go({ model: event.target.value }) },
      this.models.map((one) => h("option", { value: one, selected: one === model }, one)));
    models.value = model;
    return h("div", { class: "row" }, h("label", {}, "Model", models),
      h("fieldset", {}, h("legend", { class: "small quiet" }, "Way"), h("div", { class: "row" },
        Object.entries(WAYS).map(([name, text]) => h("label", { class: "inline" },
          h("input", { type: "radio", name: "way", value: name, checked: name === way, onchange: () => go({ way: name }) }), text)))));
  }
}

customElements.define("msx-playground", Playground);
