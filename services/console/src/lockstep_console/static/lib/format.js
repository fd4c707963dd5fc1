// Numbers, times and names as people read them. Pure: no DOM, no clock.

/** What is shown for a value that nobody knows. It is never 0. */
export const UNKNOWN = "unknown";

const TIMES = /** @type {const} */ ([
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
]);

const BYTES = /** @type {const} */ ([
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
]);

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/**
 * Return whether a value is a number. null and undefined are unknown.
 *
 * @param {unknown} value
 * @returns {value is number}
 */
export function isKnown(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/**
 * Return a number with separators: `12,345`.
 *
 * @param {number | null | undefined} value
 */
export function inNumber(value) {
  return isKnown(value) ? WHOLE.format(value) : UNKNOWN;
}

/**
 * Return an offset; a negative one is none.
 *
 * @param {number | null | undefined} offset
 */
export function inOffset(offset) {
  return isKnown(offset) && offset < 0 ? "none" : inNumber(offset);
}

/**
 * Return a number with its noun: `1 topic`, `2,000 topics`.
 *
 * @param {number | null | undefined} value
 * @param {string} singular
 * @param {string} [plural]
 */
export function inCount(value, singular, plural = `${singular}s`) {
  return isKnown(value) ? `${inNumber(value)} ${value === 1 ? singular : plural}` : `${plural} ${UNKNOWN}`;
}

/**
 * Return a duration in its largest unit: `350 ms`, `2.4 s`, `12 min`.
 *
 * @param {number | null | undefined} ms
 */
export function inTime(ms) {
  if (!isKnown(ms)) return UNKNOWN;
  const length = Math.max(0, ms);
  for (const [size, unit] of TIMES) {
    const amount = length / size;
    if (amount >= 1) return `${amount < 9.95 ? amount.toFixed(1) : WHOLE.format(amount)} ${unit}`;
  }
  return length < 0.5 ? "0 s" : `${Math.round(length)} ms`;
}

/**
 * Return a size as a text: `512 B`, `1.5 MiB`.
 *
 * @param {number | null | undefined} bytes
 */
export function inBytes(bytes) {
  if (!isKnown(bytes)) return UNKNOWN;
  const [size, unit] = BYTES.find(([least]) => bytes >= least) ?? [1, "B"];
  return `${size === 1 ? WHOLE.format(bytes) : (bytes / size).toFixed(1)} ${unit}`;
}

/**
 * Return a number of records a second: `1,200/s`, `0.4/s`.
 *
 * @param {number | null | undefined} rate
 */
export function inRate(rate) {
  if (!isKnown(rate)) return UNKNOWN;
  return `${rate > 0 && rate < 10 ? rate.toFixed(1) : inNumber(rate)}/s`;
}

/**
 * Return how long ago a moment was. The clocks of two machines differ, so a moment in the future counts as now.
 *
 * @param {number | null | undefined} thenMs
 * @param {number} nowMs
 */
export function ago(thenMs, nowMs) {
  if (!isKnown(thenMs) || thenMs <= 0) return UNKNOWN;
  return `${wholeTime(nowMs - thenMs)} ago`;
}

/**
 * Return a duration in whole units: a text that changes each second at most.
 *
 * @param {number} ms
 */
export function wholeTime(ms) {
  const length = Math.max(0, ms);
  for (const [size, unit] of TIMES) {
    if (length >= size) return `${Math.floor(length / size)} ${unit}`;
  }
  return "0 s";
}

/** @param {number} number */
function twoDigits(number) {
  return String(number).padStart(2, "0");
}

/**
 * Return a moment as date and time of the browser's zone: `2026-11-30 04:12:07`.
 *
 * @param {number | null | undefined} ms
 */
export function inMoment(ms) {
  if (!isKnown(ms) || ms <= 0) return UNKNOWN;
  const at = new Date(ms);
  const day = [at.getFullYear(), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join("-");
  return `${day} ${inClock(ms)}`;
}

/**
 * Return the time of day in the browser's zone: `04:12:07`.
 *
 * @param {number} ms
 */
export function inClock(ms) {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(":");
}

/**
 * Return a text without characters that show nothing or turn a line round: each is written as `\u{...}`.
 *
 * A name is made by others, and must not look like another one.
 *
 * @param {unknown} text
 */
export function visible(text) {
  return String(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/**
 * Return a word of the API as people read it: `not-ready` and `TopicCreated` are `not ready` and `topic created`.
 *
 * @param {string} word
 */
export function inWords(word) {
  const spaced = word.replaceAll(/[-_]/g, " ").replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, " ");
  return spaced === word ? word : spaced.toLowerCase();
}

/**
 * Return the text with a capital at its beginning.
 *
 * @param {string} text
 */
export function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Return the text as a sentence: with a full stop, unless it ends in one.
 *
 * @param {string} text
 */
export function asSentence(text) {
  return text && !/[.!?:]$/.test(text) ? `${text}.` : text;
}

/**
 * Return a value of the API as a short text: objects and lists as JSON.
 *
 * @param {unknown} value
 */
export function inText(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return visible(typeof value === "object" ? JSON.stringify(value) : value);
}
