// What stands above a long list: how many rows, from when, and the filter.

import { inCount } from "../lib/format.js";
import { html, useId, useRef } from "../lib/preact.js";
import { Age } from "./basics.js";

const TYPED_MS = 250;

/**
 * @param {{ pages: import("./pages.js").Pages, noun: string, filter: string, onFilter: (text: string) => void,
 *   onlyTrouble: boolean, onOnlyTrouble: (only: boolean) => void }} props
 */
export function ListHead({ pages, noun, filter, onFilter, onlyTrouble, onOnlyTrouble }) {
  const id = useId();
  const timer = useRef(0);
  const change = (/** @type {string} */ text) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onFilter(text), TYPED_MS);
  };
  const isFiltered = filter !== "" || onlyTrouble;
  return html`<div class="list-head">
    <div>
      <label for=${id}>Filter by name</label>
      <input id=${id} type="search" value=${filter} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {any} */ event) => change(event.currentTarget.value)} />
    </div>
    <label class="check">
      <input type="checkbox" checked=${onlyTrouble}
        onChange=${(/** @type {any} */ event) => onOnlyTrouble(event.currentTarget.checked)} />
      Only what is in trouble
    </label>
    <p class="muted" aria-live="polite">
      ${pages.isRead && !pages.unknown &&
      html`${isFiltered ? `${inCount(pages.matching, noun)} of ${pages.total.toLocaleString("en-US")}` : inCount(pages.total, noun)}`}
    </p>
    <p class="muted">${pages.isRead && html`read <${Age} ms=${pages.atMs} />`}</p>
  </div>`;
}
