// Figures in the words of people. NaN, null and undefined are "–".

export const NONE = "–";

function missing(value) {
  return value === null || value === undefined || Number.isNaN(value);
}

export function count(value) {
  if (missing(value)) return NONE;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(value >= 1e5 ? 0 : 1)} k`;
  return value % 1 ? value.toFixed(value < 10 ? 2 : 1) : String(value);
}

/** `value` in milliseconds. */
export function millis(value) {
  if (missing(value)) return NONE;
  if (value >= 60000) return `${(value / 60000).toFixed(1)} min`;
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10000 ? 0 : 2)} s`;
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)} ms`;
}

export function bytes(value) {
  if (missing(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) [value, at] = [value / 1024, at + 1];
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function percent(share) {
  return missing(share) ? NONE : `${(share * 100).toFixed(share && share < 0.1 ? 1 : 0)} %`;
}

export function unit(value, name) {
  return missing(value) ? NONE : `${value} ${name}`;
}

/** `seconds` since the epoch, as the time of day. */
export function clock(seconds) {
  return missing(seconds) ? NONE : new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

export function age(seconds) {
  if (missing(seconds)) return NONE;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

/** The order of names: "m2" stands before "m10". */
export function compare(a, b) {
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
