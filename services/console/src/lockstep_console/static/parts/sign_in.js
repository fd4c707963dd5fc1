// Signing in: the token is kept in this tab, until it is closed.

import { Problem, get, keepToken, signInNeeded, token } from "../lib/api.js";
import { asSentence, visible } from "../lib/format.js";
import { html, signal, useEffect, useId, useRef, useState } from "../lib/preact.js";
import { load, session } from "../lib/store.js";
import { keepFocus } from "./basics.js";

const isOpen = signal(false);

/** Ask for the token. */
export function openSignIn() {
  isOpen.value = true;
}

/** Forget the token of this tab. */
export function signOut() {
  keepToken("");
  void load();
}

/** Whether this tab has a token. */
export function hasToken() {
  return token() !== "";
}

/** The dialog of the token. It is there once in a page. */
export function SignInDialog() {
  return isOpen.value ? html`<${OpenDialog} />` : null;
}

function OpenDialog() {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const title = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  const closed = () => {
    isOpen.value = false;
    keepFocus(); // who has signed in has no button for it any more
  };
  const takesToken = session.value?.takes_token ?? true;
  return html`<dialog ref=${dialog} aria-labelledby=${title} onClose=${closed}>
    <h2 id=${title}>${takesToken ? "Sign in" : "Read-only"}</h2>
    <p>${asSentence(session.value?.why_read_only ?? "")}</p>
    ${takesToken ? html`<${TokenForm} onDone=${close} onCancel=${close} />` : html`<${NoToken} close=${close} />`}
  </dialog>`;
}

/**
 * What to do where no token lets anybody act.
 *
 * @param {{ close: () => void }} props
 */
function NoToken({ close }) {
  return html`<p>
      To act here, start the console with <code>--token-file FILE</code>, and sign in with that token. Or let an authenticating proxy
      name the user, with <code>--trust-header</code>. The commands of <code>lockstep</code> in a terminal do the same.
    </p>
    <div class="buttons"><button type="button" class="main" onClick=${close}>Close</button></div>`;
}

/** The page that is shown if nothing may be read without a token. */
export function SignInPage() {
  return html`<div class="narrow">
    <h1 tabindex="-1">Sign in</h1>
    <p>${visible(asSentence(signInNeeded.value))}</p>
    <${TokenForm} onDone=${() => undefined} />
  </div>`;
}

/** @param {{ onDone: () => void, onCancel?: () => void }} props */
function TokenForm({ onDone, onCancel }) {
  const id = useId();
  const [value, setValue] = useState("");
  const [trouble, setTrouble] = useState("");
  const [isAsking, setIsAsking] = useState(false);

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setTrouble("");
    setIsAsking(true);
    const before = token();
    keepToken(value.trim());
    try {
      const who = await get("session");
      if (who.may_act) {
        await load();
        onDone();
        return;
      }
      setTrouble(who.why_read_only || "The console does not accept this token.");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setTrouble(problem.message);
    } finally {
      setIsAsking(false);
    }
    keepToken(before);
  };

  return html`<form onSubmit=${submit}>
    <p>
      <label for=${id}>Token</label>
      <input id=${id} type="password" autocomplete="off" value=${value}
        onInput=${(/** @type {any} */ event) => setValue(event.currentTarget.value)} />
      <span class="muted">It is the token of the console's --token-file. This tab keeps it until it is closed.</span>
    </p>
    <div role="alert">${trouble && html`<p class="bad-text">${visible(asSentence(trouble))}</p>`}</div>
    <div class="buttons">
      ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
      <button type="submit" class="main" disabled=${!value.trim() || isAsking}>${isAsking ? "Asking ..." : "Sign in"}</button>
    </div>
  </form>`;
}
