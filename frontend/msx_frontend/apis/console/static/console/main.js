// The frame of the console: where one is, whether the server is there, and the view that the address names.

import { h, show } from "../shared/dom.js";
import "../shared/elements.js";
import { notice, skipLink } from "../shared/elements.js";
import { clock } from "../shared/format.js";
import "./batches.js";
import "./jobs.js";
import "./model.js";
import "./overview.js";
import "./register.js";
import { Store } from "./store.js";
import "./traces.js";

const VIEWS = {
  "": "msx-overview", batches: "msx-batches", jobs: "msx-jobs", model: "msx-model", register: "msx-register", traces: "msx-traces",
};
const TITLES = { "": "Overview", batches: "Batches", jobs: "Jobs", model: "Model", register: "Register", traces: "Traces" };

class Console extends HTMLElement {
  connectedCallback() {
    this.store = new Store();
    this.top = h("header", { class: "top" });
    this.status = h("div", { "aria-live": "polite" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.replaceChildren(skipLink(this.main), this.top, this.main);
    addEventListener("hashchange", () => this.#go(true));
    this.addEventListener("key", () => this.store.again());
    this.store.addEventListener("change", () => this.#changed());
    this.#go(false);
    this.store.start();
  }

  /** "#/model/name/1.0" is ["model", "name", "1.0"]. */
  get place() {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  }

  #go(moved) {
    const [view, ...names] = this.place;
    const tag = VIEWS[view] ?? VIEWS[""];
    this.view = document.createElement(tag);
    Object.assign(this.view, { store: this.store, names });
    document.title = [names.join(" "), TITLES[view] ?? TITLES[""], "MSX console"].filter(Boolean).join(" – ");
    this.body = h("div", { class: "stack" }, this.status);
    this.main.replaceChildren(this.body);
    this.#changed();
    if (moved) {
      scrollTo(0, 0);
      this.main.focus({ preventScroll: true });
    }
  }

  #changed() {
    const { state, said } = this.store;
    this.#drawTop();
    const anew = show(this.status, [state, said, state === "lost" ? this.store.since : 0], () => this.#said(state, said));
    if (anew && state === "key") this.status.firstChild.focus();
    const ready = this.store.parts.size > 0 && state !== "key";
    if (ready && !this.view.isConnected) this.#open();
    else if (!ready && this.view.isConnected) this.view.remove();
    if (this.view.isConnected) this.view.update();
  }

  /** The keyboard goes on at the content where it was in the form that asked for the key. */
  #open() {
    this.body.append(this.view);
    if (document.activeElement === document.body) this.main.focus({ preventScroll: true });
  }

  #said(state, said) {
    if (state === "key") return h("msx-key-form", { kind: "management", refused: said });
    if (state === "lost") {
      const last = this.store.parts.size ? ` What is shown is of ${clock(this.store.since / 1000)}.` : "";
      return notice(`${said} Trying again.${last}`, "bad");
    }
    if (state === "refused") return notice(`The server refuses to be shown: ${said}`, "bad");
    return this.store.parts.size ? null : notice("Asking the server …");
  }

  #drawTop() {
    const [view] = this.place;
    const server = this.store.part("server");
    const live = this.store.state === "live";
    const word = !live ? "not connected" : server?.draining ? "ending" : server?.ready ? "ready" : "not ready";
    show(this.top, [view, word, server?.host, server?.addresses], () => h("div", { class: "row spread" },
      h("a", { class: "brand", href: "#/" }, "MSX console"),
      h("nav", { "aria-label": "Views" },
        [["", "Overview"], ["jobs", "Jobs"], ["batches", "Batches"], ["traces", "Traces"], ["register", "Register"]].map(([name, text]) =>
          h("a", { href: `#/${name}`, "aria-current": (VIEWS[view] ? view : "") === name ? "page" : null }, text)),
        this.#playground(server)),
      h("span", { class: `badge ${word === "ready" ? "good" : live ? "warn" : "bad"}`, role: "status" },
        `${server?.host ?? "server"}: ${word}`)));
  }

  /** The playground is a page of the inference listener, which is another origin with another key. */
  #playground(server) {
    const address = server?.addresses?.inference;
    if (!address) return null;
    const url = new URL(address.replace("0.0.0.0", location.hostname).replace("[::]", location.hostname));
    return h("a", { href: `${url.origin}/playground`, target: "_blank", rel: "noopener" }, "Playground ↗");
  }
}

customElements.define("msx-console", Console);
