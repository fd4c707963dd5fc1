// Requests to the console's API. The token is in the tab's sessionStorage and goes as a header: there is no cookie.

import { signal } from "./preact.js";

const TOKEN = "lockstep-token";

/** More than the console takes for any answer: it says what it waits for, and that is what is shown. */
const ANSWERED_WITHIN_MS = 65_000;

/** Why the API wants a token before it shows anything, or "" if it does not. */
export const signInNeeded = signal("");

/** An answer that is no success, or none at all. The message is a sentence for people. */
export class Problem extends Error {
  /**
   * @param {number} status The HTTP status; 0: nothing answered.
   * @param {string} code The code of the API, such as `unknown-flow`.
   * @param {string} sentence
   * @param {Record<string, unknown>} [details]
   */
  constructor(status, code, sentence, details = {}) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Return the token of this tab, or "". */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/**
 * Keep a token for this tab; "" forgets it.
 *
 * @param {string} value
 */
export function keepToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/**
 * Return the path of something of a flow.
 *
 * @param {string} flow
 * @param {string} [rest]
 */
export function flowPath(flow, rest = "") {
  return `flows/${encodeURIComponent(flow)}${rest}`;
}

/**
 * Return the address of a resource, relative to the page: a proxy may put the console under a path.
 *
 * @param {string} path
 * @param {Record<string, string | number | boolean | null | undefined>} [query] What is "" or null is left out.
 */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `api/v1/${path}${text ? `?${text}` : ""}`;
}

/**
 * Send a request, and return the answer if it is a success.
 *
 * @param {string} target
 * @param {RequestInit} [init]
 * @returns {Promise<Response>}
 * @throws {Problem}
 */
export async function request(target, init = {}) {
  const headers = new Headers(init.headers);
  if (token()) headers.set("Authorization", `Bearer ${token()}`);
  let response;
  try {
    response = await fetch(target, { ...init, headers, credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted && init.signal.reason?.name !== "TimeoutError") throw error;
    throw new Problem(0, "no-answer", "The console does not answer. What is shown may be old.");
  }
  if (response.ok) {
    return response;
  }
  const problem = await readProblem(response);
  if (problem.status === 401 && (init.method ?? "GET") === "GET") signInNeeded.value = problem.message;
  throw problem;
}

/**
 * Return what an answer says is wrong.
 *
 * @param {Response} response
 */
async function readProblem(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    body = null; // not of the API: a proxy's page, or none
  }
  const { code = "", sentence = "", ...details } = body?.error ?? {};
  const otherwise = `The console answered ${response.status} ${response.statusText}`.trim();
  return new Problem(response.status, code, sentence || `${otherwise}.`, details);
}

/** @param {AbortSignal} [cancel] */
function limited(cancel) {
  const late = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  return cancel ? AbortSignal.any([cancel, late]) : late;
}

/**
 * Read a resource.
 *
 * @param {string} path
 * @param {Record<string, string | number | boolean | null | undefined>} [query]
 * @param {AbortSignal} [cancel]
 * @returns {Promise<any>}
 * @throws {Problem}
 */
export async function get(path, query, cancel) {
  const response = await request(address(path, query), { signal: limited(cancel) });
  return response.json();
}

/**
 * Ask the console to do something.
 *
 * @param {string} path
 * @param {Record<string, unknown>} body
 * @returns {Promise<any>}
 * @throws {Problem}
 */
export async function post(path, body) {
  const response = await request(address(path), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Lockstep-Request": "1" },
    body: JSON.stringify(body),
    signal: limited(),
  });
  return response.json();
}

/**
 * Save a resource as a file. A link could not send the token.
 *
 * @param {string} path
 * @param {string} name The file's name.
 * @param {Record<string, string | number>} [query]
 * @throws {Problem}
 */
export async function download(path, name, query) {
  const response = await request(address(path, query), { signal: limited() });
  saveBlob(await response.blob(), name);
}

/**
 * Save JSON values as a file.
 *
 * @param {unknown} body
 * @param {string} name
 */
export function saveJson(body, name) {
  saveBlob(new Blob([JSON.stringify(body, null, 2)], { type: "application/json" }), name);
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
