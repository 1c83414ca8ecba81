// The last log lines of a version's workers: asks for more when the server says that there are some.

import { call } from "../shared/api.js";
import { h } from "../shared/dom.js";
import { clock } from "../shared/format.js";

const MOST = 400;

class Lines extends HTMLElement {
  last = 0;

  connectedCallback() {
    if (this.childElementCount) return;
    this.body = h("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "Log lines of the workers" }, "No lines yet.");
    this.append(this.body);
  }

  async update(version) {
    if (this.asking || version.lines === this.last) return;
    this.asking = true;
    const query = { model: version.modelName, version: version.modelVersion, after: this.last };
    try {
      const { lines } = await call("management", "GET", "/console/lines", { query });
      if (lines.length) this.#add(lines);
      else this.last = version.lines;
    } catch (error) {
      this.body.replaceChildren(`The lines cannot be shown: ${error.message}`);
      this.last = 0;
    }
    this.asking = false;
  }

  #add(lines) {
    const atEnd = this.body.scrollTop + this.body.clientHeight >= this.body.scrollHeight - 8;
    if (!this.last) this.body.replaceChildren();
    this.body.append(...lines.map((line) => h("span", { class: line.level },
      `${clock(line.time)} ${line.level} worker ${line.worker} rank ${line.rank}${line.request ? ` [${line.request}]` : ""}  ${line.text}\n`)));
    while (this.body.childNodes.length > MOST) this.body.firstChild.remove();
    this.last = lines.at(-1).number;
    if (atEnd) this.body.scrollTop = this.body.scrollHeight;
  }
}

customElements.define("msx-lines", Lines);
