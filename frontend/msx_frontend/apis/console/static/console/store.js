// What the server has told: values by name, and who wants to know of changes. Connects again for as long as it takes.

import { events, keyOf, needsKey } from "../shared/api.js";
import { compare } from "../shared/format.js";

const KIND = "management";
const SLOWEST = 10000;

export class Store extends EventTarget {
  parts = new Map();
  /** "connecting", "live", "lost", "key" (a key is wanted) or "refused" (with `said`). */
  state = "connecting";
  said = "";
  since = Date.now();
  #stop = new AbortController();

  start() {
    this.#run();
  }

  /** Begin anew, with another key. */
  again() {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#to("connecting");
    this.#run();
  }

  part(name) {
    return this.parts.get(name);
  }

  /** Versions by name and number, in their order. */
  get versions() {
    const found = [...this.parts].filter(([name]) => name.startsWith("version ")).map(([, value]) => value);
    return found.sort((a, b) => compare(a.modelName, b.modelName) || compare(a.modelVersion, b.modelVersion));
  }

  version(model, number) {
    const own = this.versions.filter((one) => one.modelName === model);
    return number ? own.find((one) => one.modelVersion === number) : own.find((one) => one.default) ?? own[0];
  }

  figures(version) {
    return version ? this.part(`figures ${version.modelName} ${version.modelVersion}`) : this.part("figures");
  }

  async #run() {
    const { signal } = this.#stop;
    if (needsKey(KIND)) return this.#to("key");
    let wait = 500;
    while (!signal.aborted) {
      try {
        for await (const { event, data } of events(KIND, "/console/events", { signal })) {
          wait = 500;
          if (event === "refused") return this.#to("key", JSON.parse(data).message);
          this.#take(event, JSON.parse(data));
        }
        this.#to("lost", "The server has ended, or closed the connection.");
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error.wantsKey) return this.#to("key", keyOf(KIND) ? error.message : "");
        this.#to(error.status ? "refused" : "lost", error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, SLOWEST);
    }
    return undefined;
  }

  #take(event, { set, gone = [] }) {
    if (event === "all") this.parts = new Map();
    for (const [name, value] of Object.entries(set)) this.parts.set(name, value);
    for (const name of gone) this.parts.delete(name);
    this.#to("live");
  }

  #to(state, said = "") {
    if (state !== "live" && this.state === "live") this.since = Date.now();
    this.state = state;
    this.said = said;
    this.dispatchEvent(new Event("change"));
  }
}
