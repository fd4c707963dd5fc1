// The dialog of an action: what it does and loses, its scope, the question, and the outcome as it comes.

import { Problem, flowPath, post } from "../lib/api.js";
import { asSentence, capitalized, visible } from "../lib/format.js";
import { html, signal, useEffect, useId, useRef, useState } from "../lib/preact.js";
import { addCommand, commands, now, session } from "../lib/store.js";
import { Facts, Text, keepFocus, useResource } from "./basics.js";
import { Outcome } from "./outcome.js";
import { openSignIn } from "./sign_in.js";

/** @typedef {import("../lib/actions.js").Action} Action */

/** The action that is asked about, or null. */
const asked = signal(/** @type {(Action & { onSent?: (answer: any) => void }) | null} */ (null));

/**
 * Ask about an action. `onSent` gets the console's answer, if it is carried out.
 *
 * @param {Action} action
 * @param {(answer: any) => void} [onSent]
 */
export function ask(action, onSent) {
  asked.value = { ...action, onSent };
}

/**
 * A button that asks about an action. Without the right to act it says why it cannot be used.
 *
 * @param {{ action: Action, onSent?: (answer: any) => void, label?: string, isInRow?: boolean }} props
 *   `isInRow`: others have the same label, so a screen reader gets the scope too.
 */
export function ActionButton({ action, onSent, label = action.title, isInRow = false }) {
  const who = session.value;
  const reason = useId();
  const words = isInRow ? html`${label}<span class="hidden"> ${visible(action.scope)}</span>` : label;
  if (who?.may_act) {
    return html`<button type="button" class=${action.isGrave ? "grave" : ""} onClick=${() => ask(action, onSent)}>
      ${words}
    </button>`;
  }
  return html`<span class="refused">
    <button type="button" aria-disabled="true" aria-describedby=${reason} title=${who?.why_read_only} onClick=${() => openSignIn()}>
      ${words}
    </button>
    <span class="hidden" id=${reason}>Read-only: ${who?.why_read_only}</span>
  </span>`;
}

/** Why nothing can be decided on this page, if so. */
export function ReadOnlyNote() {
  const who = session.value;
  if (!who || who.may_act) return null;
  return html`<p class="muted">
    <span class="mark" aria-hidden="true">‖</span> Read-only. ${asSentence(who.why_read_only)}
    ${" "}<button type="button" class="link" onClick=${() => openSignIn()}>${who.takes_token ? "Sign in" : "What to do"}</button>
  </p>`;
}

/** The dialog. It is there once in a page. */
export function ActionDialog() {
  const action = asked.value;
  return action && html`<${AskedDialog} key=${`${action.path}${JSON.stringify(action.body)}`} action=${action} />`;
}

/** @typedef {{ does?: string, loses?: string, asked?: string[] }} Words */

/**
 * Return what an action does and loses, in the console's words.
 *
 * @param {Action} action
 * @returns {import("./basics.js").Resource<Words>}
 */
function useWords(action) {
  const { does, loses } = action;
  return useResource(`${action.path}${JSON.stringify(action.body)}`, async () => {
    if (does !== undefined) return { does, loses };
    return post(flowPath(action.flow, action.path), { ...action.body, dry_run: true });
  });
}

/** @param {{ action: Action & { onSent?: (answer: any) => void } }} props */
function AskedDialog({ action }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const title = useId();
  const words = useWords(action);
  const [confirmed, setConfirmed] = useState(false);
  const [offset, setOffset] = useState("");
  const [state, setState] = useState({ isSending: false, id: "", problem: /** @type {Problem | null} */ (null) });
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  const closed = () => {
    asked.value = null;
    keepFocus(); // what was decided does not wait any more, and its button is gone
  };
  const problem = state.problem ?? words.problem;

  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    setState({ ...state, isSending: true, problem: null });
    try {
      const body = action.needsOffset ? { ...action.body, arguments: { offset: Number(offset) } } : action.body;
      const answer = await post(flowPath(action.flow, action.path), body);
      addCommand({
        id: answer.id,
        flow: action.flow,
        title: action.title,
        scope: action.scope,
        sentence: answer.sentence,
        sentMs: now.value,
        reply: null,
      });
      setState({ isSending: false, id: answer.id, problem: null });
      action.onSent?.(answer);
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      setState({ ...state, isSending: false, problem: refused });
    }
  };

  const isReady = confirmed && words.value !== null && (!action.needsOffset || /^\d+$/.test(offset));
  return html`<dialog ref=${dialog} aria-labelledby=${title} onClose=${closed}>
    <h2 id=${title}>${visible(action.title)}</h2>
    <${Facts} facts=${[
      ["Scope", html`<${Text} text=${action.scope} />`],
      ["It does", inSentence(words.value?.does)],
      ["It loses", inSentence(words.value?.loses)],
    ]} />
    ${words.value?.asked && html`<p class="muted">Asked: ${words.value.asked.join(", ")}.</p>`}
    ${state.id
      ? html`<${Sent} id=${state.id} close=${close} />`
      : html`<form onSubmit=${send}>
          ${action.needsOffset && html`<${OffsetField} value=${offset} onChange=${setOffset} />`}
          <${Confirmation} action=${action} onChange=${setConfirmed} />
          <div role="alert">
            ${problem instanceof Error && html`<p class="bad-text">${visible(asSentence(capitalized(problem.message)))}</p>`}
          </div>
          <div class="buttons">
            <button type="button" onClick=${close}>Cancel</button>
            <button type="submit" class=${action.isGrave ? "grave" : "main"} disabled=${!isReady || state.isSending}>
              ${state.isSending ? "Sending ..." : visible(action.title)}
            </button>
          </div>
        </form>`}
  </dialog>`;
}

/** @param {string | undefined} text */
function inSentence(text) {
  return text === undefined ? "..." : html`<${Text} text=${asSentence(capitalized(text))} />`;
}

/** @param {{ value: string, onChange: (text: string) => void }} props */
function OffsetField({ value, onChange }) {
  const id = useId();
  return html`<p>
    <label for=${id}>Source offset at which the copy goes on</label>
    <input id=${id} type="text" inputmode="numeric" pattern="[0-9]*" autocomplete="off" value=${value}
      onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value.trim())} />
  </p>`;
}

/** @param {{ action: Action, onChange: (confirmed: boolean) => void }} props */
function Confirmation({ action, onChange }) {
  const id = useId();
  if (action.confirm === "type") {
    return html`<p>
      <label for=${id}>Type <strong>${visible(action.flow)}</strong> to confirm</label>
      <input id=${id} type="text" autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value.trim() === action.flow)} />
    </p>`;
  }
  return html`<p>
    <label class="check">
      <input type="checkbox" onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked)} />
      <span>I have read what it does and loses, for <${Text} text=${action.scope} /></span>
    </label>
  </p>`;
}

/** @param {{ id: string, close: () => void }} props */
function Sent({ id, close }) {
  const command = commands.value.find((sent) => sent.id === id);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => button.current?.focus(), []);
  return html`<div>
    <div aria-live="polite">${command && html`<${Outcome} command=${command} />`}</div>
    <div class="buttons"><button type="button" class="main" ref=${button} onClick=${close}>Close</button></div>
  </div>`;
}
