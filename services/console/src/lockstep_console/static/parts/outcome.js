// How a command went, as it comes: in its dialog, and below the page until it is put away.

import { asSentence, inWords, visible } from "../lib/format.js";
import { html, useEffect } from "../lib/preact.js";
import { commands, dropCommand, isOpen, now, readCommand } from "../lib/store.js";
import { connection } from "../lib/stream.js";
import { Age, State, Text, keepFocus } from "./basics.js";

/** @typedef {import("../lib/store.js").SentCommand} SentCommand */
/** @typedef {import("../lib/tone.js").Tone} Tone */

/** @type {Readonly<Record<string, { tone: Tone, word: string }>>} */
const PHASES = {
  running: { tone: "note", word: "under way" },
  done: { tone: "good", word: "done" },
  failed: { tone: "bad", word: "failed" },
  refused: { tone: "bad", word: "refused" },
  unanswered: { tone: "unknown", word: "no answer" },
  unfinished: { tone: "note", word: "not finished" },
};

/**
 * Return the outcome in one word. Pure.
 *
 * @param {Api.CommandReply | null} reply
 * @returns {{ tone: Tone, word: string }}
 */
export function outcomeOf(reply) {
  return PHASES[reply?.phase ?? "running"] ?? { tone: "plain", word: inWords(reply?.phase ?? "") };
}

/** How often a page without a stream asks. */
const ASKED_MS = 5_000;

/** @param {{ command: SentCommand }} props */
export function Outcome({ command }) {
  const { reply } = command;
  const { tone, word } = outcomeOf(reply);
  useEffect(() => {
    if (connection.value.state === "live" || !isOpen(command)) return;
    readCommand(command).catch(() => undefined); // the page says already that it is not live
  }, [Math.floor(now.value / ASKED_MS)]);
  const lines = linesOf(reply);
  return html`<div class="outcome">
    <p>
      <${State} word=${word} tone=${tone} />
      ${" "}<span><${Text} text=${asSentence(reply?.sentence || command.sentence)} /></span>
    </p>
    ${reply?.phase === "running" && reply.missing.length > 0 && html`<p class="muted">Until now there is no answer from ${reply.missing.join(", ")}.</p>`}
    ${lines.length > 0 && html`<ul class="plain">${lines.map((line) => html`<li key=${line}>${visible(asSentence(line))}</li>`)}</ul>`}
  </div>`;
}

/**
 * Return what services have answered, once all is over, as far as the sentence of the outcome does not say it. Pure.
 *
 * @param {Api.CommandReply | null} reply
 * @returns {string[]}
 */
export function linesOf(reply) {
  if (!reply || reply.phase === "running") return [];
  const steps = reply.steps ?? [];
  const lines = steps.flatMap(({ verb, lines }) =>
    lines.filter((line) => !reply.sentence.includes(line)).map((line) => (steps.length > 1 ? `${verb}: ${line}` : line)),
  );
  return [...new Set(lines)];
}

/** @param {string} id */
function putAway(id) {
  dropCommand(id);
  keepFocus();
}

/** What was asked for from this page. A screen reader says each change. */
export function SentCommands() {
  const sent = commands.value;
  return html`<section class=${`sent ${sent.length ? "" : "hidden"}`} aria-label="Commands of this page" aria-live="polite">
    ${sent.map(
      (command) =>
        html`<div class="card" key=${command.id}>
          <div class="section-head">
            <h2>${visible(command.title)}: <${Text} text=${command.scope} /></h2>
            <span class="muted"><${Age} ms=${command.sentMs} /></span>
            <button type="button" class="quiet" onClick=${() => putAway(command.id)}>
              Put away<span class="hidden"> ${visible(command.title)}: ${visible(command.scope)}</span>
            </button>
          </div>
          <${Outcome} command=${command} />
        </div>`,
    )}
  </section>`;
}
