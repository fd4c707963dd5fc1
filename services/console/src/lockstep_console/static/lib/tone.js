// How a state looks: a tone with its mark and its word. Colour alone never says anything. Pure.

/** @typedef {"good" | "note" | "bad" | "unknown" | "rest" | "plain"} Tone */

/** @type {Readonly<Record<Tone, string>>} */
export const MARKS = { good: "✓", note: "!", bad: "✕", unknown: "?", rest: "‖", plain: "·" };

/** @type {Readonly<Record<string, Tone>>} */
const TONES = {
  // partitions and topics
  copying: "good",
  mirrored: "good",
  "not begun": "note",
  unassigned: "note",
  silent: "bad",
  stalled: "bad",
  halted: "bad",
  failed: "bad",
  failing: "bad",
  creating: "note",
  waiting: "note",
  resuming: "note",
  excluded: "rest",
  "left-out": "rest",
  deleted: "rest",
  // desired state
  running: "good",
  paused: "rest",
  stopped: "rest",
  // slots
  started: "good",
  released: "rest",
  // groups
  exact: "good",
  behind: "good",
  "in use on target": "note",
  "in-use": "note",
  contested: "bad",
  refused: "bad",
  "ahead on target": "bad",
  "rewound on source": "bad",
  skips: "bad",
  reading: "note",
  moving: "note",
  // switches and commands
  done: "good",
  ended: "good",
  aborting: "note",
  aborted: "rest",
  undone: "rest",
  left: "bad",
  // comparisons
  differs: "bad",
  "not compared": "unknown",
  "not all compared": "unknown",
  "nothing to compare": "rest",
  // severities
  critical: "bad",
  error: "bad",
  warning: "note",
  unknown: "unknown",
};

/**
 * Return the tone of a state. A word that this release does not know is shown plainly.
 *
 * @param {string} state
 * @returns {Tone}
 */
export function toneOf(state) {
  return TONES[state] ?? "plain";
}

/**
 * Return the tone and the word of a whole flow.
 *
 * @param {Api.Flow | null | undefined} flow
 * @returns {{ tone: Tone, word: string }}
 */
export function flowTone(flow) {
  if (!flow) return { tone: "unknown", word: "not read yet" };
  if (flow.unknown) return { tone: "unknown", word: "unknown" };
  if ((flow.decisions ?? []).length) return { tone: "bad", word: "needs a decision" };
  if ((flow.troubles ?? []).length) return { tone: "bad", word: "in trouble" };
  if (flow.fine) return { tone: "good", word: "fine" };
  const held = flow.held_back ?? [];
  if (held.some((part) => part.scope === "flow")) return { tone: "rest", word: held[0]?.wanted ?? "paused" };
  if (flow.lag_unknown) return { tone: "unknown", word: "lag unknown" };
  const isCopied = !Object.keys(flow.not_copying ?? {}).length && Object.keys(flow.groups_held ?? {}).length > 0;
  return { tone: "note", word: isCopied ? "not all groups move" : "not all is copied" };
}

/**
 * Return whether clients can move, as a tone and a word.
 *
 * @param {Api.Flow | null | undefined} flow
 * @returns {{ tone: Tone, word: string }}
 */
export function readinessTone(flow) {
  if (!flow || flow.unknown) return { tone: "unknown", word: "readiness unknown" };
  if (flow.switch_ready === null) return { tone: "rest", word: "copies nothing" };
  return flow.switch_ready ? { tone: "good", word: "ready to switch" } : { tone: "note", word: "not ready to switch" };
}

/**
 * Return how a group is, in one word. The API may say it; otherwise it follows from the counts.
 *
 * @param {Api.Group} group
 * @returns {string}
 */
export function groupWord(group) {
  if (group.readiness) return group.readiness;
  if (group.trouble) return group.held === "refused" ? "refused" : "failing";
  if (group.held) return group.held === "in-use" ? "in use on target" : group.held;
  if (group.waiting || !(group.exact || group.behind)) return "waiting";
  return group.behind ? "behind" : "exact";
}
