// Elements of the page without a template language: h("p", {class: "quiet"}, "text", child).

const SVG = "http://www.w3.org/2000/svg";

/** Properties that begin with "on" are listeners; null, undefined and false leave the attribute out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Give `parent` what `build()` makes, but only when `of` differs from the last time: what a reader has marked, or
 * where the keyboard is, stays as it is while nothing changes. True when it was made anew. */
export function show(parent, of, build) {
  const now = JSON.stringify(of);
  if (parent.shownOf === now) return false;
  parent.shownOf = now;
  const at = parent.contains(document.activeElement) ? nameOf(document.activeElement) : "";
  parent.replaceChildren(...[build()].flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  if (at) [...parent.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")]
    .find((one) => nameOf(one) === at)?.focus();
  return true;
}

function nameOf(element) {
  return element.id || element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;
}
