// A line of the last 15 minutes, in a row of a table.

import { inTime, UNKNOWN } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { linePath, worstOf } from "../lib/trend.js";

const WIDTH = 90;
const HEIGHT = 22;

/** A lag below this looks flat. */
const FLAT_MS = 1_000;

/** @param {{ values: (number | null)[] | null | undefined }} props */
export function Spark({ values }) {
  const worst = worstOf(values ?? []);
  if (!values || !worst) return html`<span class="muted">${UNKNOWN}</span>`;
  return html`<svg class="spark" role="img" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT}
    aria-label=${`Lag of the last 15 minutes: at most ${inTime(worst.value)}`}>
    <path d=${linePath(values, WIDTH, HEIGHT, FLAT_MS)} />
  </svg>`;
}
