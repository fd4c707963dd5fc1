// What waits for a decision: each with its range, and what each choice does and loses.

import { choiceAction, scopeInWords } from "../lib/actions.js";
import { asSentence, capitalized, inCount, inText, inWords, isKnown, visible } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { flowHref } from "../lib/route.js";
import { ActionButton, ReadOnlyNote } from "./action_dialog.js";
import { Code, Lasting, State, Text } from "./basics.js";

/**
 * Return the words for the range of a decision: offsets, or what the API says. Pure.
 *
 * @param {unknown} range
 * @returns {string}
 */
export function rangeInWords(range) {
  if (range === null || range === undefined || range === "") return "";
  if (typeof range === "string") return range;
  if (Array.isArray(range)) return range.map(inText).join(" to ");
  return Object.entries(range)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${inWords(name)} ${Array.isArray(value) ? value.map(inText).join(" to ") : inText(value)}`)
    .join(", ");
}

/** @param {{ list: Api.Decision[], leftOut: number, showsFlow?: boolean }} props */
export function Decisions({ list, leftOut, showsFlow = false }) {
  return html`<div aria-live="polite">
    ${list.length > 0 && html`<${ReadOnlyNote} />`}
    <ul class="cards">
      ${list.map((decision) => html`<${DecisionCard} key=${`${decision.flow} ${decision.kind} ${decision.subject}`} decision=${decision} showsFlow=${showsFlow} />`)}
    </ul>
    ${leftOut > 0 && html`<p class="muted">and ${inCount(leftOut, "more halted partition")}, which come as these are decided</p>`}
  </div>`;
}

/** @param {{ decision: Api.Decision, showsFlow: boolean }} props */
function DecisionCard({ decision, showsFlow }) {
  const range = rangeInWords(decision.range);
  return html`<li class="card decision">
    <div class="section-head">
      <h3><${Text} text=${capitalized(scopeInWords(decision.subject, decision.flow))} /></h3>
      <${State} word=${inWords(decision.kind)} tone="bad" />
      ${isKnown(decision.since_ms) && decision.since_ms > 0 && html`<span class="muted"><${Lasting} ms=${decision.since_ms} /></span>`}
      ${showsFlow && html`<a href=${flowHref(decision.flow)}>Open <${Text} text=${decision.flow} /></a>`}
    </div>
    <p><${Text} text=${asSentence(capitalized(decision.sentence))} /> <${Code} code=${decision.code} /></p>
    ${(decision.case || range) &&
    html`<p class="muted">
      ${decision.case && html`Case <${Code} code=${decision.case} />. `}${range && html`Range: ${visible(asSentence(range))}`}
    </p>`}
    <ul class="choices">
      ${decision.choices.map((choice) => {
        const action = choiceAction(decision, choice);
        return html`<li key=${`${choice.verb} ${choice.label}`}>
          ${choice.line ? html`<strong>${visible(choice.label)}</strong>` : html`<${ActionButton} action=${action} />`}
          <span>
            <${Text} text=${asSentence(capitalized(choice.does))} />
            ${choice.line && html`<pre tabindex="0">${visible(choice.line)}</pre>`}
            <strong> It loses:</strong> <${Text} text=${asSentence(choice.loses)} />
          </span>
        </li>`;
      })}
    </ul>
  </li>`;
}
