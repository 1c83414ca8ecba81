// Custom elements that all pages share.

import { setKey } from "./api.js";
import { h } from "./dom.js";

/** Asks for a key: <msx-key-form kind="management">. Sends the event "key" when one was given. */
class KeyForm extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    const kind = this.getAttribute("kind") ?? "management";
    const field = h("input", {
      id: `key-${kind}`, type: "password", name: "key", required: true, autocomplete: "off", spellcheck: "false",
    });
    this.said = h("p", { class: "notice bad", role: "alert", hidden: true });
    const form = h("form", { class: "card stack", onsubmit: (event) => this.#given(event, kind, field) },
      h("h2", {}, `This server asks for its ${kind} key`),
      h("p", { class: "quiet" },
        `It is the one named “${kind}” in the server's key_file.json, or one of the operator's keys. `,
        "This tab keeps it until it is closed; it is sent to this server only."),
      this.said, h("label", {}, `Key (${kind})`, field),
      h("div", { class: "row" }, h("button", { class: "main", type: "submit" }, "Use this key")));
    this.append(form);
    this.refused(this.getAttribute("refused") ?? "");
  }

  /** Say why the key that was given is not taken. */
  refused(text) {
    this.said.textContent = text;
    this.said.hidden = !text;
  }

  focus() {
    this.querySelector("input")?.focus();
  }

  #given(event, kind, field) {
    event.preventDefault();
    setKey(kind, field.value.trim());
    field.value = "";
    this.dispatchEvent(new CustomEvent("key", { bubbles: true }));
  }
}

/** A line of a shell with a button that copies it: <msx-curl>curl …</msx-curl>, or its property `line`. */
class CurlLine extends HTMLElement {
  #line = "";

  set line(text) {
    this.#line = text;
    this.#draw();
  }

  get line() {
    return this.#line;
  }

  connectedCallback() {
    this.#line ||= this.textContent.trim();
    this.#draw();
  }

  #draw() {
    if (!this.isConnected) return;
    if (!this.code) {
      this.code = h("code");
      this.button = h("button", { type: "button", class: "small", onclick: () => this.#copy() }, "Copy");
      this.replaceChildren(h("div", { class: "curl" }, this.code, this.button));
    }
    this.code.textContent = this.#line;
    this.hidden = !this.#line;
    this.button.setAttribute("aria-label", "Copy the curl line");
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.#line);
      this.button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(this.code);
      this.button.textContent = "Marked";
    }
    setTimeout(() => (this.button.textContent = "Copy"), 2000);
  }
}

const WORDS = {
  good: ["READY"], bad: ["FAILED", "GONE"],
  warn: ["DEGRADED", "WAITING", "ASLEEP", "RESTARTING", "DRAINING", "UNLOADING", "STOPPED"],
};

/** The state of a model or worker as a coloured word. */
export function badge(state) {
  const kind = Object.keys(WORDS).find((one) => WORDS[one].includes(state)) ?? "busy";
  return h("span", { class: `badge ${kind}` }, state);
}

export function notice(text, kind = "") {
  return h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, text);
}

/** Facts as a list of names and values: facts({Name: "value"}). Empty values are left out. */
export function facts(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl", { class: "facts" }, given.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** A table: `columns` are {name, number, first, wide, value(row)}. Where it has no room for columns, each row is a card:
 * those that are `first` stand in its first line, a `wide` one has a line of its own, and others follow with their names. */
export function table(caption, columns, rows, empty = "Nothing yet.") {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const kind = (one) => ["number", "first", "wide"].filter((name) => one[name]).join(" ") || null;
  const head = columns.map((one) => h("th", { scope: "col", role: "columnheader", class: kind(one) }, one.name));
  const body = rows.map((row) => h("tr", { role: "row" }, columns.map((one) =>
    h("td", { role: "cell", class: kind(one), "data-name": one.name }, one.value(row)))));
  const cards = columns.some((one) => one.first) && "cards";
  return h("div", { class: ["scroll", cards].filter(Boolean).join(" "), tabindex: "0", role: "region", "aria-label": caption },
    h("table", { role: "table" }, h("caption", { class: "skip" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)), h("tbody", { role: "rowgroup" }, body)));
}

/** The first thing that a keyboard reaches: past the links of the top, to the content. */
export function skipLink(main) {
  return h("a", { class: "skip", href: "#main", onclick: (event) => {
    event.preventDefault();
    main.focus();
  } }, "Skip to the content");
}

customElements.define("msx-key-form", KeyForm);
customElements.define("msx-curl", CurlLine);
