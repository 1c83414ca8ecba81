// Register a model: by the name of an archive or a URL, or by upload.

import { h } from "../shared/dom.js";
import { bytes } from "../shared/format.js";
import { action, forbidden } from "./action.js";

const OPTIONS = [
  { name: "model_name", label: "Name", hint: "Without one, that of the archive" },
  { name: "initial_workers", label: "Workers at first", type: "number", min: 0, value: "1" },
  { name: "batch_size", label: "Batch size", type: "number", min: 1, hint: "Without one, that of the archive" },
  { name: "max_batch_delay", label: "Batch delay (ms)", type: "number", min: 0 },
  { name: "response_timeout", label: "Time limit (s)", type: "number", min: 1 },
  { name: "replace", label: "Replace the version that is there", type: "checkbox" },
];

class Register extends HTMLElement {
  update() {
    if (this.childElementCount) return;
    const { settings } = this.store.part("server");
    this.append(h("div", { class: "stack" }, h("h1", {}, "Register a model"),
      h("div", { class: "grid-2" },
        h("section", { class: "card" }, byUrl(settings)), h("section", { class: "card" }, byUpload(settings)))));
  }
}

function byUrl(settings) {
  return action({
    title: "From the model store or a URL", button: "Register",
    off: forbidden(settings, "enable_model_api"),
    fields: [{ name: "url", label: "Archive", required: true, placeholder: "net.mar", hint: "A file of the model store, or https://…" }, ...OPTIONS],
    ask: ({ url, ...options }) => ({ method: "POST", path: "/models", query: { url, ...query(options) } }),
  });
}

function byUpload(settings) {
  return action({
    title: "From this machine", button: "Upload and register",
    off: forbidden(settings, "enable_model_api", "console_upload"),
    fields: [{ name: "file", label: "Archive", type: "file", required: true, accept: ".mar,.zip,.tgz,.gz",
      hint: `At most ${bytes(settings.max_request_size)} (max_request_size)` }, ...OPTIONS],
    ask: ({ file, ...options }) => ({
      method: "PUT", path: `/console/upload/${encodeURIComponent(file?.name ?? "net.mar")}`,
      query: query(options), file: file ?? new File([], "net.mar"),
    }),
  });
}

function query({ replace, ...options }) {
  return { ...options, ...(replace ? { replace: true } : {}) };
}

customElements.define("msx-register", Register);
