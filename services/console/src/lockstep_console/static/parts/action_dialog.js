// The dialog of an action: what it does and loses, its scope, the question, and the outcome as it comes.

import { Problem, flowPath, post } from "../lib/api.js";
import { asSentence, capitalized, visible } from "../lib/format.js";
import { html, signal, useEffect, useId, useRef, useState } from "../lib/preact.js";
import { addCommand, commands, now, session } from "../lib/store.js";
import { Facts } from "./basics.js";
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
 * @param {{ action: Action, onSent?: (answer: any) => void, label?: string, title?: string }} props
 */
export function ActionButton({ action, onSent, label = action.title, title = action.does }) {
  const who = session.value;
  const reason = useId();
  if (who?.may_act) {
    return html`<button type="button" class=${action.isGrave ? "grave" : ""} title=${title} onClick=${() => ask(action, onSent)}>
      ${label}
    </button>`;
  }
  return html`<span class="refused">
    <button type="button" aria-disabled="true" aria-describedby=${reason} title=${who?.why_read_only} onClick=${() => openSignIn()}>
      ${label}
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
    ${" "}<button type="button" class="link" onClick=${() => openSignIn()}>Sign in</button>
  </p>`;
}

/** The dialog. It is there once in a page. */
export function ActionDialog() {
  const action = asked.value;
  return action && html`<${AskedDialog} key=${`${action.path}${JSON.stringify(action.body)}`} action=${action} />`;
}

/** @param {{ action: Action & { onSent?: (answer: any) => void } }} props */
function AskedDialog({ action }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const title = useId();
  const [confirmed, setConfirmed] = useState(false);
  const [state, setState] = useState({ isSending: false, id: "", sentence: "", problem: /** @type {Problem | null} */ (null) });
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();

  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    setState({ ...state, isSending: true, problem: null });
    try {
      const answer = await post(flowPath(action.flow, action.path), action.body);
      const sentence = answer.sentence ?? "It is asked for.";
      if (action.path === "/commands" || action.path === "/verifications") {
        const sent = { id: answer.id, flow: action.flow, title: action.title, sentence, sentMs: now.value, reply: null };
        addCommand(sent);
      }
      setState({ isSending: false, id: answer.id ?? "-", sentence, problem: null });
      action.onSent?.(answer);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setState({ ...state, isSending: false, problem });
    }
  };

  return html`<dialog ref=${dialog} aria-labelledby=${title} onClose=${() => (asked.value = null)}>
    <h2 id=${title}>${action.title}</h2>
    <${Facts} facts=${[
      ["Scope", visible(action.scope)],
      ["It does", visible(asSentence(action.does))],
      ["It loses", visible(asSentence(action.loses))],
    ]} />
    ${state.id
      ? html`<${Sent} id=${state.id} sentence=${state.sentence} close=${close} />`
      : html`<form onSubmit=${send}>
          <${Confirmation} action=${action} onChange=${setConfirmed} />
          <div role="alert">
            ${state.problem && html`<p class="bad-text">${visible(asSentence(capitalized(state.problem.message)))}</p>`}
          </div>
          <div class="buttons">
            <button type="button" onClick=${close}>Cancel</button>
            <button type="submit" class=${action.isGrave ? "grave" : "main"} disabled=${!confirmed || state.isSending}>
              ${state.isSending ? "Sending ..." : action.title}
            </button>
          </div>
        </form>`}
  </dialog>`;
}

/** @param {{ action: Action, onChange: (confirmed: boolean) => void }} props */
function Confirmation({ action, onChange }) {
  const id = useId();
  if (action.confirm === "type") {
    return html`<p>
      <label for=${id}>Type <strong>${visible(action.flow)}</strong> to confirm</label>
      <input id=${id} type="text" autocomplete="off" spellcheck=${false} autofocus
        onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value.trim() === action.flow)} />
    </p>`;
  }
  return html`<p>
    <label class="check">
      <input type="checkbox" autofocus onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked)} />
      I have read what it does and loses, for ${visible(action.scope)}
    </label>
  </p>`;
}

/** @param {{ id: string, sentence: string, close: () => void }} props */
function Sent({ id, sentence, close }) {
  const command = commands.value.find((sent) => sent.id === id);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => button.current?.focus(), []);
  return html`<div>
    <div aria-live="polite">
      ${command ? html`<${Outcome} command=${command} />` : html`<p>${visible(asSentence(sentence))}</p>`}
    </div>
    <div class="buttons"><button type="button" class="main" ref=${button} onClick=${close}>Close</button></div>
  </div>`;
}
