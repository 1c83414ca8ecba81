// A form that changes something: its fields, the curl line that does the same, what the server said, and why it is off.

import { call, curl, upload } from "../shared/api.js";
import { h } from "../shared/dom.js";
import { notice } from "../shared/elements.js";

const KIND = "management";

/** `told` is where the answer is shown, if it must outlast the form. `ask(values)` makes {method, path, query, json, file} of the values of the fields. `off` says why it cannot be used.
 * `confirm(values)` is a question that is asked before. */
export function action({ title, fields = [], button, danger, off, confirm, ask, told }) {
  const line = document.createElement("msx-curl");
  const said = told ?? h("div", { "aria-live": "polite" });
  const send = h("button", { type: "submit", class: danger ? "danger" : "main", disabled: Boolean(off) }, button ?? title);
  const progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Upload" });
  const inputs = fields.map((one) => field(one, Boolean(off)));
  const values = () => Object.fromEntries(inputs.map(({ name, read }) => [name, read()]));
  const write = () => {
    const wanted = ask(values());
    line.line = curl(KIND, wanted.method, wanted.path, { ...wanted, file: wanted.file?.name });
  };
  const typed = (event) => {
    event.target.dataset.typed = "";
    write();
  };
  const form = h("form", { class: "stack", "data-title": title, oninput: typed, onsubmit: (event) => submit(event) },
    h("h3", {}, title), off ? notice(off, "warn") : null,
    h("div", { class: "fields" }, inputs.map(({ element }) => element)),
    h("div", { class: "row" }, send), progress, told ? null : said,
    h("details", {}, h("summary", {}, "The same with curl"), line));
  write();

  async function submit(event) {
    event.preventDefault();
    const given = values();
    if (confirm && !window.confirm(confirm(given))) return;
    send.disabled = true;
    said.replaceChildren(notice("Asking the server …"));
    try {
      const answer = await run(ask(given), progress);
      typedIn(form).forEach((input) => delete input.dataset.typed);
      said.replaceChildren(notice(answer.status ?? "Done.", "good"));
    } catch (error) {
      said.replaceChildren(notice(error.message, "bad"));
    }
    progress.hidden = true;
    send.disabled = Boolean(off);
  }
  form.redraw = write;
  return form;
}

function run({ method, path, query, json, file }, progress) {
  if (!file) return call(KIND, method, path, { query, json });
  progress.hidden = false;
  return upload(KIND, method, path, { query, file, progress: (share) => (progress.value = share) });
}

function field({ name, label, type = "text", value = "", options, hint, ...more }, disabled) {
  const id = `f-${name}-${Math.random().toString(36).slice(2, 8)}`;
  if (type === "checkbox") {
    const box = h("input", { id, type, checked: Boolean(value), disabled, name });
    return { name, read: () => box.checked, element: h("label", { class: "inline", for: id }, box, label) };
  }
  const input = options
    ? h("select", { id, name, disabled }, options.map((one) => h("option", { value: one }, one)))
    : h("input", { id, name, type, disabled, autocomplete: "off", ...more });
  if (type !== "file" && !options) input.value = value;
  if (options && value) input.value = value;
  const read = () => (type === "file" ? input.files[0] : input.value.trim());
  return { name, read, element: h("label", { for: id }, label, input, hint ? h("span", { class: "quiet small" }, hint) : null) };
}

/** Draw the forms in `place` anew, and leave in their fields what somebody has typed and not sent. */
export function keepTyped(place, draw) {
  const typed = new Map(typedIn(place).map((input) => [nameOf(input), input]));
  draw();
  for (const input of place.querySelectorAll("input, select")) {
    const before = typed.get(nameOf(input));
    if (before && before !== input && input.type !== "file" && !input.disabled) type(input, before);
  }
}

function type(input, before) {
  input.value = before.value;
  input.checked = before.checked;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function typedIn(place) {
  return [...place.querySelectorAll("[data-typed]")];
}

function nameOf(input) {
  return `${input.form.dataset.title}: ${input.name}`;
}

/** Why what the key forbids is off; "" where it is on. */
export function forbidden(settings, ...keys) {
  const off = keys.filter((key) => !settings[key]);
  return off.length ? `Off: set ${off.map((key) => `${key}=true`).join(" and ")} in config.properties, and start the server again.` : "";
}
