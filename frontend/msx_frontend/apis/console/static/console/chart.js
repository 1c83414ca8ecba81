// Lines over the last hour, drawn as SVG: <msx-chart>, with `draw({title, unit, lines})`.

import { h, svg } from "../shared/dom.js";
import { clock, NONE } from "../shared/format.js";

const WIDTH = 320;
const HEIGHT = 110;
const COLOURS = ["--one", "--two", "--three", "--four"];

class Chart extends HTMLElement {
  /** `lines`: [{name, values}], from old to new, null where nothing is known; `ended` is the time of the last value in
   * seconds, `every` the seconds from one to the next; `format(value)` makes a text. */
  draw({ title, lines, ended, every, format }) {
    this.given = { title, lines, ended, every, format };
    const known = lines.flatMap((line) => line.values).filter((value) => value !== null);
    const most = Math.max(...known, 0);
    const top = most > 0 ? most * 1.08 : 1;
    const [back, focused] = [this.back ?? null, this.picture?.matches(":focus")];
    const latest = lines.map((line, at) => this.#legend(line, at, format));
    const told = lines.map((line) => `${line.name} now ${format(last(line.values))}`).join(", ");
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, x1: -9, x2: -9 });
    this.picture = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${title}, until now: ${known.length ? `${told}; at most ${format(most)}` : "no requests"}`,
      tabindex: "0", onpointermove: (event) => this.#at(event), onpointerleave: () => this.#point(null),
      onkeydown: (event) => this.#step(event), onblur: () => this.#point(null),
    }, this.#grid(), lines.map((line, at) => this.#line(line.values, top, at)), this.cursor);
    this.said = h("p", { class: "small quiet said", "aria-live": "polite" });
    this.replaceChildren(h("div", { class: "card chart" },
      h("div", { class: "row spread" }, h("h3", {}, title), h("span", { class: "small quiet" },
        known.length ? `up to ${format(most)}` : "no requests yet")),
      h("ul", { class: "legend small" }, latest), this.picture, this.said));
    if (focused) this.picture.focus({ preventScroll: true });
    this.#point(back);
  }

  #legend(line, at, format) {
    return h("li", { class: `mark${at}` }, `${line.name} `, h("b", {}, format(last(line.values))));
  }

  #range() {
    const { ended, every } = this.given;
    return `${clock(ended - every * this.#count)} – ${clock(ended)}`;
  }

  #grid() {
    return [0.25, 0.5, 0.75].map((share) =>
      svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * share, y2: HEIGHT * share }));
  }

  #line(values, top, at) {
    const step = WIDTH / Math.max(this.#count - 1, 1);
    let path = "";
    values.forEach((value, number) => {
      if (value === null) return;
      const x = (number * step).toFixed(1);
      const y = (HEIGHT - 1 - (value / top) * (HEIGHT - 4)).toFixed(1);
      const alone = (values[number - 1] ?? null) === null && (values[number + 1] ?? null) === null;
      path += (values[number - 1] ?? null) === null ? `M${x} ${y}` : `L${x} ${y}`;
      if (alone) path += "h1.5";
    });
    return svg("path", { class: "curve", d: path, stroke: `var(${COLOURS[at]})`, "vector-effect": "non-scaling-stroke" });
  }

  #at(event) {
    const box = event.currentTarget.getBoundingClientRect();
    this.#point(Math.round((1 - (event.clientX - box.left) / box.width) * (this.#count - 1)));
  }

  #step(event) {
    const steps = { ArrowLeft: 1, ArrowRight: -1, Home: Infinity, End: -Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.#point((this.back ?? 0) + steps[event.key]);
  }

  /** Show the values of a moment, `back` points before the last one; null: of none. */
  #point(back) {
    const { lines, ended, every, format } = this.given;
    const last = this.#count - 1;
    this.back = back === null || last < 1 ? null : Math.min(last, Math.max(0, back));
    const at = this.back === null ? -1 : last - this.back;
    for (const name of ["x1", "x2"]) this.cursor.setAttribute(name, at < 0 ? -9 : (at * WIDTH) / last);
    const told = lines.map((line) => `${line.name} ${format(line.values[at])}`).join(" · ");
    this.said.textContent = at < 0 ? this.#range() : `${clock(ended - every * this.back)}: ${told || NONE}`;
  }

  get #count() {
    return this.given.lines[0]?.values.length ?? 0;
  }
}

function last(values) {
  return values.at(-1);
}

customElements.define("msx-chart", Chart);
