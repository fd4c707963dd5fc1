// Server-sent events as text to messages, and when to connect again. Pure.

/** @typedef {{ event: string, data: string }} Message */

/** Makes messages of pieces of a stream. A piece may end anywhere. */
export class EventParser {
  #rest = "";

  /**
   * Return the messages that are whole now. Comments give none.
   *
   * @param {string} piece
   * @returns {Message[]}
   */
  feed(piece) {
    const blocks = (this.#rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(parseBlock).filter((message) => message !== null);
  }
}

/**
 * @param {string} block
 * @returns {Message | null}
 */
function parseBlock(block) {
  let event = "message";
  /** @type {string[]} */
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return data.length ? { event, data: data.join("\n") } : null;
}

const FIRST_MS = 1_000;
const LONGEST_MS = 15_000;

/**
 * Return how long to wait before an attempt: twice as long each time, and not at the same moment as other browsers.
 *
 * @param {number} attempt 0 for the first one.
 * @param {number} chance From 0 to 1.
 */
export function backoffMs(attempt, chance) {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt) * (0.75 + chance / 4);
}
