// The first view: the server in figures, its models, what they run on, and the last hour.

import { h, show } from "../shared/dom.js";
import { badge, notice, table } from "../shared/elements.js";
import { NONE, age, bytes, count, millis, percent, unit } from "../shared/format.js";
import "./charts.js";

export function linkTo(version, text) {
  const path = [version.modelName, version.modelVersion].map(encodeURIComponent).join("/");
  return h("a", { href: `#/model/${path}` }, text ?? version.modelName);
}

const COLUMNS = [
  { name: "Model", first: true, value: ({ version }) => linkTo(version) },
  { name: "Version", value: ({ version }) => [version.modelVersion, version.default ? " (default)" : ""] },
  { name: "State", first: true, value: ({ version }) => badge(version.state) },
  { name: "Traffic", number: true, first: true, value: ({ version }) => share(version) },
  { name: "Workers", number: true, value: ({ version }) => workers(version) },
  { name: "Queue", number: true, value: ({ version }) => count(version.queued) },
  { name: "Running", number: true, value: ({ version }) => count(version.running) },
  { name: "Requests", number: true, value: ({ figures, every }) => (figures ? `${count(figures.requests / every)}/s` : "–") },
  { name: "p50", number: true, value: ({ figures }) => millis(figures?.p50) },
  { name: "p99", number: true, value: ({ figures }) => millis(figures?.p99) },
  { name: "Memory", number: true, value: ({ version }) => bytes(memory(version)) },
];

/** Rows of the models' table before someone asks for all. */
const MOST = 25;

export function memory(version) {
  return version.workers.reduce((sum, one) =>
    sum + (one.ranks?.reduce((whole, rank) => whole + rank.memoryUsage, 0) ?? one.memoryUsage ?? 0), 0);
}

function failed(version) {
  return Number(version.state === "FAILED");
}

function workers(version) {
  const ready = version.workers.filter((one) => one.status === "READY").length;
  return `${ready} of ${version.workers.length}`;
}

function share(version) {
  return version.trafficShare === undefined ? (version.default ? "100 %" : "–") : percent(version.trafficShare);
}

class Overview extends HTMLElement {
  connectedCallback() {
    if (this.childElementCount) return;
    this.tiles = h("div", { class: "tiles" });
    this.models = h("div", {});
    this.filter = h("input", { type: "search", id: "filter", placeholder: "Name or state",
      "aria-label": "Filter models by name or state", oninput: () => this.update() });
    this.most = MOST;
    this.runsOn = h("section", { class: "card stack", "aria-labelledby": "devices" });
    this.charts = document.createElement("msx-charts");
    this.append(h("div", { class: "stack" }, h("h1", {}, "Overview"), this.tiles,
      h("section", { class: "card stack", "aria-labelledby": "models" }, h("div", { class: "row spread" },
        h("h2", { id: "models" }, "Models"),
        h("div", { class: "row" }, this.filter, h("a", { class: "button", href: "#/register" }, "Register a model"))),
      this.models),
      h("h2", {}, "The last hour, all models"), this.charts, this.runsOn));
  }

  update() {
    const { store } = this;
    const { versions } = store;
    this.#tiles(store.part("server"), versions);
    this.#models(versions, store.part("server").history.every);
    this.#runsOn(store.part("devices") ?? [], store.part("cluster"), versions);
    this.charts.update(store);
  }

  #tiles(server, versions) {
    const now = this.store.figures();
    const ready = versions.filter((one) => one.state === "READY").length;
    const failing = now ? now.failed : 0;
    const told = [
      ["Models ready", `${ready} of ${versions.length}`],
      ["Requests", now ? `${count(now.requests / server.history.every)}/s` : "–"],
      ["Errors (5xx)", now ? count(failing) : "–"],
      ["p99", millis(now?.p99)],
      ["Waiting", count(versions.reduce((sum, one) => sum + one.queued, 0))],
      ["Workers' memory", bytes(versions.reduce((sum, one) => sum + memory(one), 0))],
      ["Server's memory", bytes(server.memory)],
      ["Up for", age(Date.now() / 1000 - server.began)],
    ];
    show(this.tiles, told, () => told.map(([name, value]) =>
      h("div", { class: "tile" }, h("span", { class: "quiet small" }, name), h("b", {}, value))));
  }

  #models(versions, every) {
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = ({ modelName, state }) => `${modelName}\n${state}`.toLowerCase().includes(wanted);
    const found = versions.filter(fits).sort((a, b) => failed(b) - failed(a));
    const rows = found.slice(0, this.most).map((version) => ({ version, figures: this.store.figures(version), every }));
    const empty = versions.length ? "No model has such a name or state."
      : "No model is registered. Register one here, or start the server with --models.";
    show(this.models, [rows, empty, found.length], () => [table("Models and their versions", COLUMNS, rows, empty),
      found.length > rows.length ? h("p", {}, h("button", { type: "button", id: "every", onclick: () => this.#showAll() },
        `Show all ${found.length}`)) : null]);
  }

  /** The keyboard goes on at the first of those that come. */
  #showAll() {
    const next = this.most;
    this.most = Infinity;
    this.update();
    this.models.querySelectorAll("td a")[next]?.focus();
  }

  #runsOn(devices, cluster, versions) {
    show(this.runsOn, [devices, cluster, devices.length ? 0 : versions.length], () => {
      if (cluster) return this.#cluster(cluster);
      const head = h("h2", { id: "devices" }, "Devices");
      if (!devices.length) {
        return [head, h("p", { class: "quiet" }, "This server has no devices: its models run on the CPU.")];
      }
      return [head, table("Devices", [
        { name: "Device", first: true, value: (one) => `${one.device} (${one.name}${one.simulated ? ", simulated" : ""})` },
        { name: "State", first: true, value: (one) => badge(one.healthy ? "READY" : "FAILED") },
        { name: "Load", number: true, value: (one) => unit(one.utilization, "%") },
        { name: "Memory", number: true, value: (one) => (one.memoryTotal ? `${bytes(one.memoryUsed)} of ${bytes(one.memoryTotal)}` : NONE) },
        { name: "Temperature", number: true, value: (one) => unit(one.temperature, "°C") },
        { name: "ECC errors", value: (one) => errors(one.memoryErrors) },
        { name: "Held by", value: (one) => one.holders.join(", ") || "nobody" },
      ], devices)];
    });
  }

  #cluster(cluster) {
    return [h("h2", { id: "devices" }, "Nodes of the cluster"), cluster.problem ? notice(cluster.problem, "bad") : null,
      table("Nodes", [
        { name: "Node", first: true, value: (one) => one.name },
        { name: "Address", value: (one) => one.address },
        { name: "State", first: true, value: (one) => badge(one.alive ? "READY" : "FAILED") },
        { name: "Free", value: (one) => figures(one.free) },
        { name: "Of", value: (one) => figures(one.resources) },
        { name: "Devices of this server", value: (one) => one.devices.join(", ") || "none" },
      ], cluster.nodes, "The cluster has no node."),
      h("h3", {}, "Placed"), table("Placed groups", [
        { name: "Model", value: (one) => `${one.model} ${one.version}` },
        { name: "Worker", value: (one) => one.worker },
        { name: "On", value: (one) => one.shares.map((share) => `${share.node}: ranks ${share.ranks.join(", ")}`).join("; ") },
      ], cluster.placed, "No worker is placed."),
      cluster.waiting.length ? [h("h3", {}, "Waiting"), h("ul", {}, cluster.waiting.map((one) =>
        h("li", {}, `${one.model} ${one.version}, worker ${one.worker}: ${one.reason}`)))] : null];
  }
}

function errors(counted) {
  if (!counted) return NONE;
  return Object.entries(counted).filter(([, number]) => number).map(([name, number]) => `${number} ${name}`).join(", ") || "0";
}

function figures(resources) {
  return Object.entries(resources ?? {}).map(([name, value]) => `${value} ${name}`).join(", ") || "–";
}

customElements.define("msx-overview", Overview);
