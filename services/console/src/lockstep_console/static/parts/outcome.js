// How a command went, as it comes: in its dialog, and below the page until it is put away.

import { capitalized, inWords, visible } from "../lib/format.js";
import { html, useEffect } from "../lib/preact.js";
import { commands, dropCommand, now, readCommand } from "../lib/store.js";
import { connection } from "../lib/stream.js";
import { Age, State } from "./basics.js";

/** @typedef {import("../lib/store.js").SentCommand} SentCommand */
/** @typedef {import("../lib/tone.js").Tone} Tone */

/** After this time without all answers it is worth saying that a service does not answer. */
const SLOW_MS = 10_000;

/**
 * Return the outcome in one word. Pure.
 *
 * @param {Api.CommandReply | null} reply
 * @param {number} waitedMs
 * @returns {{ tone: Tone, word: string }}
 */
export function outcomeOf(reply, waitedMs) {
  if (reply?.trouble) return { tone: "bad", word: "not sent" };
  if (reply?.answers.some((answer) => answer.kind === "CommandRefused")) return { tone: "bad", word: "refused" };
  if (reply && !reply.missing.length) return { tone: "good", word: "done" };
  if (reply?.ended) return { tone: "unknown", word: "no answer" };
  return { tone: waitedMs > SLOW_MS ? "unknown" : "note", word: "waiting for answers" };
}

/** @param {{ command: SentCommand }} props */
export function Outcome({ command }) {
  const { reply } = command;
  const { tone, word } = outcomeOf(reply, now.value - command.sentMs);
  useEffect(() => {
    if (connection.value.state !== "live" && tone === "note") void readCommand(command).catch(() => undefined);
  }, [Math.floor(now.value / 5_000)]);
  return html`<div class="outcome">
    <p><${State} word=${word} tone=${tone} /> <span>${visible(command.sentence)}</span></p>
    ${reply?.trouble && html`<p>${visible(reply.trouble)}</p>`}
    ${reply &&
    html`<ul class="plain">
      ${reply.answers.map(
        (answer) =>
          html`<li key=${answer.service}>
            <strong>${answer.service}</strong>: ${capitalized(inWords(answer.kind))}${answerText(answer)}
          </li>`,
      )}
      ${reply.missing.map(
        (service) => html`<li key=${service}><strong>${service}</strong>: no answer yet. The command is kept for 7 days.</li>`,
      )}
    </ul>`}
  </div>`;
}

/** @param {Api.CommandAnswer} answer */
function answerText(answer) {
  const { reason, scope, wanted, entries } = answer.detail;
  if (reason) return `: ${visible(reason)}`;
  if (scope && wanted) return `, ${visible(scope)} is to be ${visible(wanted)}`;
  return entries === undefined ? "" : `, ${visible(entries)} entries`;
}

/** What was asked for from this page. A screen reader says each change. */
export function SentCommands() {
  const sent = commands.value;
  return html`<section class=${`sent ${sent.length ? "" : "hidden"}`} aria-label="Commands of this page" aria-live="polite">
    ${sent.map(
      (command) =>
        html`<div class="card" key=${command.id}>
          <div class="section-head">
            <h2>${command.title}: ${visible(command.flow)}</h2>
            <span class="muted"><${Age} ms=${command.sentMs} /></span>
            <button type="button" class="quiet" onClick=${() => dropCommand(command.id)}>
              Put away<span class="hidden"> ${command.title} of ${visible(command.flow)}</span>
            </button>
          </div>
          <${Outcome} command=${command} />
        </div>`,
    )}
  </section>`;
}
