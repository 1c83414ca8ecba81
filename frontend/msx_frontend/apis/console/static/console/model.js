// One version of a model: its workers, its last hour, what was understood of its archive, and what can be done to it.

import { call } from "../shared/api.js";
import { h, show } from "../shared/dom.js";
import { badge, facts, notice, table } from "../shared/elements.js";
import { NONE, bytes, count, millis, percent } from "../shared/format.js";
import { keepTyped } from "./action.js";
import { actions } from "./actions.js";
import "./charts.js";
import "./lines.js";
import { linkTo } from "./overview.js";
import "./traces.js";

class Model extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.head = h("div", { class: "stack" });
    this.append(this.head);
  }

  update() {
    const [name, number] = this.names;
    const version = this.store.version(name, number);
    if (!version) {
      this.drawn?.remove();
      this.drawn = undefined;
      show(this.head, [name, number], () => [h("h1", {}, `${name ?? ""} ${number ?? ""}`),
        notice("This model version is not registered (any more)."), h("p", {}, h("a", { href: "#/" }, "Back to the overview"))]);
      return;
    }
    const others = this.store.versions.filter((one) => one.modelName === name);
    this.#head(version, others);
    if (!this.drawn) this.#draw(version);
    this.#workers(version);
    this.#actions(version, others);
    this.charts.update(this.store, version);
    this.lines.update(version);
    this.traces.update(this.store, version);
  }

  #head(version, others) {
    const figures = this.store.figures(version);
    const told = [version.state, version.default, version.reason, version.traceback, version.trafficShare, version.aliases, version.queued,
      version.running, version.overlap, figures?.p50, figures?.p99, others.map((one) => [one.modelVersion, one.default])];
    show(this.head, told, () => [
      h("p", {}, h("a", { href: "#/" }, "Overview"), " / ", version.modelName),
      h("div", { class: "row" }, h("h1", {}, `${version.modelName} ${version.modelVersion}`), badge(version.state),
        version.default ? h("span", { class: "badge" }, "default") : null),
      others.length > 1 ? h("p", { class: "row" }, "Versions: ", others.map((one) =>
        one === version ? h("b", {}, one.modelVersion) : linkTo(one, one.modelVersion))) : null,
      version.reason ? notice(version.reason, "bad") : null,
      version.traceback ? h("details", { open: true }, h("summary", {}, "The traceback of the last error"), h("pre", {}, version.traceback)) : null,
      h("div", { class: "card" }, facts({
        Archive: version.modelUrl, Aliases: (version.aliases ?? []).join(", "), Device: version.deviceType, Waiting: count(version.queued), Running: count(version.running),
        p50: millis(figures?.p50), p99: millis(figures?.p99), Traffic: version.trafficShare === undefined ? "" : percent(version.trafficShare),
        Workers: `${version.minWorkers} to ${version.maxWorkers}`, "Batch size": `${version.batchSize}, at most ${version.maxBatchDelay} ms of waiting`,
        "Time limit": `${version.responseTimeout} s`, Overlap: overlap(version.overlap),
      }))]);
  }

  #draw(version) {
    this.workers = h("section", { class: "card stack", "aria-label": "Workers" });
    this.understood = h("section", { class: "card stack" }, h("h2", {}, "As it was understood"), h("p", { class: "quiet" }, "Asking the server …"));
    this.told = h("div", { "aria-live": "polite" });
    this.forms = h("section", { class: "card stack" });
    [this.charts, this.lines, this.traces] = ["msx-charts", "msx-lines", "msx-trace-list"].map((tag) => document.createElement(tag));
    this.drawn = h("div", { class: "stack after" }, this.workers, this.charts, this.forms,
      h("section", { class: "card stack" }, h("h2", {}, "Log lines of its workers"), this.lines), this.understood,
      h("h2", {}, "Traces"), this.traces);
    this.append(this.drawn);
    this.#understood(version);
  }

  async #understood(version) {
    const query = { model: version.modelName, version: version.modelVersion };
    try {
      const known = await call("management", "GET", "/console/model", { query });
      const parts = [["Signature", known.signature], ["Configuration", known.config], ["Manifest", known.manifest],
        ["Methods", known.methods], ["What it offers", known.capabilities]];
      this.understood.replaceChildren(h("h2", {}, "As it was understood"), ...parts.map(([title, value]) =>
        h("details", { open: title === "Signature" }, h("summary", {}, title), h("pre", {}, JSON.stringify(value, null, 2)))));
    } catch (error) {
      this.understood.replaceChildren(h("h2", {}, "As it was understood"), notice(error.message, "bad"));
    }
  }

  #workers(version) {
    const rows = (version.stages ?? [{ workers: version.workers }]).flatMap((stage) => stage.workers.flatMap((worker) =>
      (worker.ranks ?? [{ rank: 0, ...worker, state: worker.status }]).map((rank) => ({ stage: stage.name, worker, rank }))));
    show(this.workers, rows, () => [h("h2", {}, "Workers"), table("Workers", [
      ...(version.stages ? [{ name: "Stage", value: ({ stage }) => stage }] : []),
      { name: "Worker", first: true, value: ({ worker }) => worker.id },
      { name: "Rank", number: true, value: ({ rank }) => String(rank.rank) },
      { name: "State", first: true, value: ({ worker, rank }) => badge(worker.status === "READY" ? rank.state : worker.status) },
      { name: "Host", value: ({ rank, worker }) => rank.host ?? nodes(worker) ?? this.store.part("server").host },
      { name: "pid", number: true, value: ({ rank }) => String(rank.pid ?? "–") },
      { name: "Memory", number: true, value: ({ rank }) => bytes(rank.memoryUsage) },
      { name: "Devices", value: ({ worker }) => devices(worker) },
      { name: "Phase or last error", wide: true, value: ({ worker, rank }) => phase(worker, rank) },
    ], rows, "No worker is wanted: scale the model.")]);
  }

  #actions(version, others) {
    const { settings } = this.store.part("server");
    const of = [settings, version.default, others.map((one) => one.modelVersion)];
    const typing = this.forms.contains(document.activeElement) && document.activeElement.matches("input, select");
    if (!typing) keepTyped(this.forms, () => show(this.forms, of, () => actions(version, others, settings, this.told)));
  }
}

/** "" while no worker has loaded the model. */
function overlap(known) {
  return known === undefined ? "" : known.enabled ? "preprocess and postprocess run beside inference" : `no: ${known.reason}`;
}

function nodes(worker) {
  return worker.nodes ? Object.keys(worker.nodes).join(", ") : undefined;
}

/** The server's numbers of them, with the memory that is the worker's. */
function devices(worker) {
  const used = (worker.deviceUsage ?? []).map((one) =>
    (one.workerMemory === undefined ? String(one.device) : `${one.device} (${bytes(one.workerMemory)})`));
  return used.join(", ") || worker.devices || NONE;
}

function phase(worker, rank) {
  const told = [worker.waitsFor?.reason, rank.phase ?? worker.phase, worker.lastError].filter(Boolean);
  const busy = ["STARTING", "LOADING"].includes(worker.status);
  return [busy ? h("progress", { "aria-label": "Loading" }) : null, told.join("; ") || "–"];
}

customElements.define("msx-model", Model);
