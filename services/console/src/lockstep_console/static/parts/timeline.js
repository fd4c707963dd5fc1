// Steps in their order, each with its state, its time and its result. A step opens to its row.

import { inTime, visible, asSentence, capitalized } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { Details, State } from "./basics.js";

/**
 * @typedef {object} TimelineStep
 * @property {string} name
 * @property {string} [meaning]
 * @property {string} state
 * @property {string} began A moment for people, or "".
 * @property {number | null} seconds
 * @property {string} text
 * @property {unknown} row
 */

/** @param {{ label: string, steps: TimelineStep[] }} props */
export function Timeline({ label, steps }) {
  return html`<ol class="timeline" aria-label=${label} aria-live="polite" aria-relevant="text">
    ${steps.map(
      (step) =>
        html`<li key=${step.name} class=${step.state}>
          <div class="section-head">
            <h3>${step.name}</h3>
            <${State} word=${step.state} tone=${step.state === "running" ? "note" : undefined} />
            ${step.began && html`<span class="muted">${step.began}</span>`}
            ${step.seconds !== null && html`<span class="muted">took ${inTime(step.seconds * 1000)}</span>`}
          </div>
          ${step.meaning && html`<p class="muted">${capitalized(step.meaning)}</p>`}
          ${step.text && html`<p>${visible(asSentence(capitalized(step.text)))}</p>`}
          <${Details} value=${step.row} summary=${`Row of ${step.name}`} />
        </li>`,
    )}
  </ol>`;
}
