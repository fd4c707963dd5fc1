// What a series of values says: the last one, the worst one, and whether it grows. Pure.

import { isKnown } from "./format.js";

/** @typedef {(number | null)[]} Series */

/**
 * Return the largest value with its index, or null if none is known.
 *
 * @param {Series} values
 */
export function worstOf(values) {
  let index = -1;
  values.forEach((value, at) => {
    if (isKnown(value) && (index < 0 || value > Number(values[index]))) index = at;
  });
  return index < 0 ? null : { value: Number(values[index]), index };
}

/**
 * Return the mean of the known values, or null if there is none.
 *
 * @param {Series} values
 */
export function meanOf(values) {
  const known = values.filter(isKnown);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/**
 * Return whether the last values are larger than those before: a third or more, and by at least `noise`.
 *
 * @param {Series} values
 * @param {number} count How many values are the last ones; they are compared with twice as many before.
 * @param {number} noise
 * @returns {"grows" | "falls" | "steady" | "unknown"}
 */
export function trendOf(values, count, noise) {
  const late = meanOf(values.slice(-count));
  const before = meanOf(values.slice(-3 * count, -count));
  if (late === null || before === null) return "unknown";
  if (late - before > Math.max(noise, before / 3)) return "grows";
  return before - late > Math.max(noise, before / 3) ? "falls" : "steady";
}

/**
 * Return a history with what is new of it: as many values as before, the last of which is the newest. Pure.
 *
 * @param {Api.Lag} lag
 * @param {Api.Lag} tail Its values replace those of the same time. Where it has none, what is known stays.
 * @returns {Api.Lag}
 */
export function withTail(lag, tail) {
  const stepMs = lag.step_s * 1_000;
  const length = lag.lag_ms.length;
  const shift = Math.max(0, (tail.begins_ms - lag.begins_ms) / stepMs + tail.lag_ms.length - length);
  const begins = lag.begins_ms + shift * stepMs;
  /** @param {"lag_ms" | "lag_records" | "records_per_s"} name */
  const column = (name) => {
    const values = [...lag[name].slice(shift), ...Array(Math.min(shift, length)).fill(null)];
    tail[name].forEach((value, index) => {
      const at = (tail.begins_ms - begins) / stepMs + index;
      if (at >= 0 && isKnown(value)) values[at] = value;
    });
    return values;
  };
  return {
    ...lag,
    begins_ms: begins,
    lag_ms: column("lag_ms"),
    lag_records: column("lag_records"),
    records_per_s: column("records_per_s"),
    worst: worstLines([...lag.worst, ...tail.worst]),
  };
}

const MOST_WORST = 20;

/**
 * Return each partition once, by the time of its longest lag, the longest first. Pure.
 *
 * @param {Api.Lag["worst"]} lines
 */
function worstLines(lines) {
  /** @type {Map<string, { line: Api.Lag["worst"][number], worst: number }>} */
  const byName = new Map();
  for (const line of lines) {
    const name = JSON.stringify([line.topic, line.partition]);
    const worst = worstOf(line.lag_ms)?.value ?? 0;
    if (worst > (byName.get(name)?.worst ?? -1)) byName.set(name, { line, worst });
  }
  return [...byName.values()].sort((one, other) => other.worst - one.worst).slice(0, MOST_WORST).map(({ line }) => line);
}

/**
 * Return the path of a small line, without what is unknown. `M0 18L1 4` and so on.
 *
 * @param {Series} values
 * @param {number} width
 * @param {number} height
 * @param {number} least The value that the whole height stands for at least, so that noise looks flat.
 */
export function linePath(values, width, height, least) {
  const top = Math.max(least, worstOf(values)?.value ?? 0);
  const step = width / Math.max(1, values.length - 1);
  let path = "";
  let isOpen = false;
  values.forEach((value, index) => {
    if (isKnown(value)) {
      const y = height - 1 - (value / top) * (height - 2);
      path += `${isOpen ? "L" : "M"}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
      if (!isOpen && !isKnown(values[index + 1])) path += "h1"; // a value alone is a dot
    }
    isOpen = isKnown(value);
  });
  return path;
}
