// Calls of the server that this page came from. The key stays in the tab: in its sessionStorage, never in an address.

const STORED = "msx.key.";

/** A refusal of the server, or no answer (`status` 0). */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** The server asks for a key, or for another one. */
  get wantsKey() {
    return this.status === 401 || (this.status === 400 && this.type === "InvalidKeyException");
  }
}

export function keyOf(kind) {
  return sessionStorage.getItem(STORED + kind) ?? "";
}

export function setKey(kind, key) {
  if (key) sessionStorage.setItem(STORED + kind, key);
  else sessionStorage.removeItem(STORED + kind);
}

/** The server asks for keys (its page says so), and this tab has none of this kind. */
export function needsKey(kind) {
  return document.documentElement.dataset.keys === "on" && !keyOf(kind);
}

/** Headers of a call with the key of this kind: "management" or "inference". */
export function headersOf(kind, more = {}) {
  const key = keyOf(kind);
  return key ? { authorization: `Bearer ${key}`, ...more } : { ...more };
}

export function withQuery(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

/** A call whose reply is read by who asks. Throws ApiError for what is not a 2xx. */
export async function request(kind, method, path, { query, json, body, headers, signal } = {}) {
  const options = { method, headers: headersOf(kind, headers), signal, cache: "no-store", credentials: "omit" };
  if (json !== undefined) {
    options.body = JSON.stringify(json);
    options.headers["content-type"] = "application/json";
  } else if (body !== undefined) options.body = body;
  let reply;
  try {
    reply = await fetch(withQuery(path, query), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  if (!reply.ok) throw await refusal(reply);
  return reply;
}

/** The header that asks the server where the time of a request went. */
export const TIMED = { "x-msx-timing": "1" };

/** What it says: "queue 0.1 ms, handler 2.3 ms". */
export function timing(reply) {
  const parts = (reply.headers.get("server-timing") ?? "").split(", ").filter(Boolean).map((one) => one.split(";dur="));
  return parts.map(([name, spent]) => `${name} ${Number(spent).toFixed(1)} ms`).join(", ");
}

/** A call whose reply is JSON. */
export async function call(kind, method, path, options) {
  const reply = await request(kind, method, path, options);
  return reply.headers.get("content-type")?.includes("json") ? reply.json() : reply.text();
}

async function refusal(reply) {
  return refused(reply.status, await reply.text().catch(() => ""), reply.statusText);
}

/** The error that a reply of this status and text stands for, in the form of any API of the server. */
export function refused(status, text, phrase = "") {
  let said = {};
  try {
    said = JSON.parse(text);
  } catch {
    said = { message: text };
  }
  const told = said?.message ?? said?.error?.message ?? said?.error ?? said?.status;
  const error = new ApiError(status, String(told || phrase || `The server answered ${status}.`));
  error.type = said?.type ?? said?.error?.type ?? "";
  return error;
}

/** The events of a server-sent stream: {event, data} with `data` as it was sent. `opened` is given the reply first. */
export async function* events(kind, path, { signal, method = "GET", opened, ...options } = {}) {
  const reply = await request(kind, method, path, { ...options, signal });
  opened?.(reply);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const event = parsed(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  let event = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return data.length ? { event, data: data.join("\n") } : null;
}

/** The line of a shell that does the same. The key is in a variable, so that it is in no history of a shell. */
export function curl(kind, method, path, { query, json, file } = {}) {
  const words = ["curl"];
  if (method !== "GET") words.push("-X", method);
  if (keyOf(kind)) words.push("-H", `"Authorization: Bearer $MSX_${kind.toUpperCase()}_KEY"`);
  if (json !== undefined) words.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(json)));
  if (file) words.push("--data-binary", quoted(`@${file}`));
  words.push(quoted(location.origin + withQuery(path, query)));
  return words.join(" ");
}

function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Send a file with `progress(share)` from 0 to 1. `fetch` does not tell how much it has sent. */
export function upload(kind, method, path, { query, file, progress, signal } = {}) {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open(method, withQuery(path, query));
    for (const [name, value] of Object.entries(headersOf(kind))) sent.setRequestHeader(name, value);
    sent.setRequestHeader("content-type", "application/octet-stream");
    sent.upload.onprogress = (event) => event.lengthComputable && progress?.(event.loaded / event.total);
    sent.onload = () => (sent.status < 300 ? resolve(JSON.parse(sent.responseText || "{}"))
      : reject(refused(sent.status, sent.responseText, sent.statusText)));
    sent.onerror = () => reject(new ApiError(0, "The server ended the connection, or does not answer."));
    sent.onabort = () => reject(new ApiError(0, "The upload was cancelled."));
    signal?.addEventListener("abort", () => sent.abort());
    sent.send(file);
  });
}
