// What the page knows: the session, each flow, commands that were sent. Each flow has a signal of its own, so that a
// change of one flow draws that one alone.

import { Problem, flowPath, get, signInNeeded } from "./api.js";
import { batch, computed, signal } from "./preact.js";
import { ChangeStream, connection } from "./stream.js";

/** @type {import("../vendor/signals.js").Signal<Api.Session | null>} */
export const session = signal(/** @type {Api.Session | null} */ (null));

/** @type {import("../vendor/signals.js").Signal<string[]>} */
export const flowNames = signal(/** @type {string[]} */ ([]));

/** Why nothing could be read at the beginning, or "". */
export const loadProblem = signal("");

/** Whether the flows have been read once. */
export const loaded = signal(false);

/** The console's time, each second while somebody looks. */
export const now = signal(Date.now());

let skewMs = 0;

/** @type {Map<string, import("../vendor/signals.js").Signal<Api.Flow | null>>} */
const flows = new Map();

/**
 * Return the signal of a flow. It is null until the flow is read.
 *
 * @param {string} name
 */
export function flowSignal(name) {
  let found = flows.get(name);
  if (!found) {
    found = signal(/** @type {Api.Flow | null} */ (null));
    flows.set(name, found);
  }
  return found;
}

/** @type {Api.Decision[]} */
const NOTHING_WAITS = [];

/** Every decision that waits, of all flows. While nothing waits, a change of a flow changes nothing here. */
export const decisions = computed(() => {
  const waiting = flowNames.value.flatMap((name) => flowSignal(name).value?.decisions ?? []);
  return waiting.length ? waiting : NOTHING_WAITS;
});

/** How many more there are, of all flows. A flow has the first ones alone. */
export const decisionsLeftOut = computed(() =>
  flowNames.value.reduce((sum, name) => sum + (flowSignal(name).value?.decisions_left_out ?? 0), 0),
);

/** @typedef {(data: any) => void} Listener */

/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();

/**
 * Call a function for each message of a kind: `rows`, `events`, `worst`, `lag`, `command`, `hello`. For `status` it is
 * called for each flow of the message.
 *
 * @param {string} kind
 * @param {Listener} listener
 * @returns {() => void} It ends that.
 */
export function onChange(kind, listener) {
  const others = listeners.get(kind) ?? new Set();
  listeners.set(kind, others.add(listener));
  return () => others.delete(listener);
}

/**
 * Call functions for messages of several kinds.
 *
 * @param {Record<string, Listener>} byKind
 * @returns {() => void} It ends that.
 */
export function onChanges(byKind) {
  const ends = Object.entries(byKind).map(([kind, listener]) => onChange(kind, listener));
  return () => ends.forEach((end) => end());
}

/**
 * @param {string} event
 * @param {any} data
 */
function receive(event, data) {
  batch(() => {
    if (event === "hello") onHello(data);
    if (event === "status") for (const flow of data) flowSignal(flow.flow).value = flow;
    if (event === "command") updateCommand(data);
    const changes = event === "status" ? data : [data];
    for (const change of changes) for (const listener of listeners.get(event) ?? []) listener(change);
  });
}

let greeted = false;

/** @param {{ at_ms: number }} hello */
function onHello(hello) {
  setClock(hello.at_ms);
  // What changed while nobody listened is not sent again.
  if (greeted || loadProblem.value) void load();
  const unended = greeted ? commands.value.filter(isOpen) : [];
  for (const command of unended) readCommand(command).catch(() => undefined); // it is asked again with the next greeting
  greeted = true;
}

/** @param {number} atMs */
function setClock(atMs) {
  skewMs = atMs - Date.now();
  now.value = Date.now() + skewMs;
}

/** The stream of changes. */
export const stream = new ChangeStream(receive);

/** Read who looks, and all flows if they may be read. */
export async function load() {
  loadProblem.value = "";
  try {
    /** @type {Api.Session} */
    const who = await get("session");
    batch(() => {
      session.value = who;
      signInNeeded.value = who.may_read ? "" : who.why_read_only;
      setClock(who.at_ms);
    });
    if (who.may_read) await loadFlows();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401) loadProblem.value = error.message;
  }
}

async function loadFlows() {
  const body = await get("flows");
  batch(() => {
    for (const flow of body.flows) flowSignal(flow.flow).value = flow;
    flowNames.value = body.flows.map((/** @type {Api.Flow} */ flow) => flow.flow);
    loaded.value = true;
    loadProblem.value = "";
  });
}

/** Keep the time, once a second and only while the page is seen. */
export function keepTime() {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() + skewMs;
  }, 1_000);
}

/** Whether what is shown can be old: the stream does not run. */
export const isStale = computed(() => connection.value.state === "broken");

// -- commands -------------------------------------------------------------------------------------------------------

/**
 * @typedef {object} SentCommand
 * @property {string} id
 * @property {string} flow
 * @property {string} title
 * @property {string} scope What it is about, in words.
 * @property {string} sentence What the console said at once.
 * @property {number} sentMs
 * @property {Api.CommandReply | null} reply
 */

/** The commands of this page, newest first. */
export const commands = signal(/** @type {SentCommand[]} */ ([]));

/**
 * Return whether something may still come of a command.
 *
 * @param {SentCommand} command
 */
export function isOpen({ reply }) {
  return !reply || reply.phase === "running";
}

/** Outcomes that came before the answer to the request did. */
const early = new Map();

/** @param {SentCommand} command */
export function addCommand(command) {
  commands.value = [{ ...command, reply: early.get(command.id) ?? command.reply }, ...commands.value].slice(0, 20);
  early.delete(command.id);
}

/** @param {Api.CommandReply} reply */
function updateCommand(reply) {
  if (!commands.value.some((command) => command.id === reply.id)) {
    early.set(reply.id, reply);
    if (early.size > 50) early.delete(early.keys().next().value);
    return;
  }
  commands.value = commands.value.map((command) => (command.id === reply.id ? { ...command, reply } : command));
}

/**
 * Ask how a command went. The stream says it too; this is for a page whose stream was broken meanwhile.
 *
 * @param {SentCommand} command
 */
export async function readCommand(command) {
  updateCommand(await get(flowPath(command.flow, `/commands/${encodeURIComponent(command.id)}`)));
}

/** @param {string} id */
export function dropCommand(id) {
  commands.value = commands.value.filter((command) => command.id !== id);
}
