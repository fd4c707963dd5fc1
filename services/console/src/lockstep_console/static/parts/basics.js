// Small parts that every screen has: states, ages, troubles, what is read.

import { Problem } from "../lib/api.js";
import { ago, asSentence, capitalized, inMoment, isKnown, visible, wholeTime } from "../lib/format.js";
import { computed, html, useCallback, useEffect, useMemo, useRef, useState } from "../lib/preact.js";
import { codeHref } from "../lib/route.js";
import { now, onChanges } from "../lib/store.js";
import { MARKS, toneOf } from "../lib/tone.js";

/** @typedef {import("../lib/preact.js").Children} Children */
/** @typedef {import("../lib/tone.js").Tone} Tone */

/**
 * A state: its mark and its word, in the colour of its tone.
 *
 * @param {{ word: string, tone?: Tone }} props
 */
export function State({ word, tone = toneOf(word) }) {
  return html`<span class=${`state ${tone}`}>
    <span class="mark" aria-hidden="true">${MARKS[tone]}</span>
    <span>${visible(word)}</span>
  </span>`;
}

/**
 * A text, such as one with the name of a flow. No line ends within an arrow.
 *
 * @param {{ text: unknown }} props
 */
export function Text({ text }) {
  return visible(text)
    .split("->")
    .flatMap((part, index) => (index ? [html`<span class="arrow">-></span>`, part] : [part]));
}

/**
 * A code, which leads to what it means.
 *
 * @param {{ code: string | null | undefined }} props
 */
export function Code({ code }) {
  return code ? html`<a class="code" href=${codeHref(code)} title="What it means, and what to do"><code>${visible(code)}</code></a>` : null;
}

/**
 * Why something fails, with its code.
 *
 * @param {{ text: string, code?: string }} props
 */
export function Reason({ text, code }) {
  return text ? html`<span><span class="bad-text">${visible(asSentence(capitalized(text)))}</span> <${Code} code=${code} /></span>` : null;
}

/**
 * How long ago a moment was. It ticks by itself: only its text is changed, and no screen reader says each tick.
 *
 * @param {{ ms: number | null | undefined }} props
 */
export function Age({ ms }) {
  const words = useMemo(() => computed(() => ago(ms, now.value)), [ms]);
  return html`<time title=${inMoment(ms)} aria-live="off">${words}</time>`;
}

/**
 * How long something has lasted. It ticks by itself.
 *
 * @param {{ ms: number }} props When it began.
 */
export function Lasting({ ms }) {
  const words = useMemo(() => computed(() => `for ${wholeTime(now.value - ms)}`), [ms]);
  return html`<time title=${inMoment(ms)} aria-live="off">${words}</time>`;
}

/**
 * How old what is shown of a flow is, and for how long it has been unknown, if it is.
 *
 * @param {{ flow: Api.Flow | null }} props
 */
export function Freshness({ flow }) {
  if (!flow || flow.at_ms <= 0) return null;
  if (!flow.unknown) return html`<span class="muted">read <${Age} ms=${flow.at_ms} /></span>`;
  const since = isKnown(flow.known_ms) ? html`unknown <${Lasting} ms=${flow.known_ms} />` : "unknown since this console began";
  return html`<span class="muted">${since}, tried <${Age} ms=${flow.at_ms} /></span>`;
}

/** Give the keyboard a place to go on from, if what had the focus is gone: the heading of the screen. */
export function keepFocus() {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.querySelector("h1")?.focus();
  });
}

/**
 * A part of a screen with its heading.
 *
 * @param {{ title: string, extra?: Children, children?: Children, level?: "h2" | "h3" }} props
 */
export function Section({ title, extra, children, level = "h2" }) {
  return html`<section class="section">
    <div class="section-head"><${level}>${title}</${level}>${extra}</div>
    ${children}
  </section>`;
}

/**
 * Something that is wrong, as a sentence.
 *
 * @param {{ problem: unknown, retry?: () => void }} props
 */
export function ProblemNote({ problem, retry }) {
  const text = problem instanceof Error ? problem.message : String(problem);
  return html`<div class="notice bad" role="alert">
    <p>
      <span class="mark" aria-hidden="true">${MARKS.bad}</span>
      ${" "}<strong>This cannot be shown.</strong> ${visible(asSentence(capitalized(text)))}
    </p>
    ${retry && html`<button type="button" class="quiet" onClick=${retry}>Try again</button>`}
  </div>`;
}

/**
 * What the target would say, if it answered.
 *
 * @param {{ reason: string }} props
 */
export function UnknownNote({ reason }) {
  return html`<div class="notice unknown">
    <p>
      <span class="mark" aria-hidden="true">${MARKS.unknown}</span>
      ${" "}<strong>Unknown.</strong> ${visible(asSentence(capitalized(reason)))}
    </p>
  </div>`;
}

/** @param {{ what: string }} props */
export function Loading({ what }) {
  return html`<p class="muted loading" role="status">Reading ${what} ...</p>`;
}

/** @param {{ children?: Children }} props */
export function Empty({ children }) {
  return html`<p class="muted empty">${children}</p>`;
}

/**
 * Names with their values.
 *
 * @param {{ facts: [name: string, value: Children][] }} props
 */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        html`<div key=${name}>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/**
 * Figures that are read first.
 *
 * @param {{ figures: { name: string, value: Children, under?: Children }[] }} props
 */
export function Figures({ figures }) {
  return html`<dl class="figures">
    ${figures.map(
      ({ name, value, under }) =>
        html`<div key=${name}>
          <dt>${name}</dt>
          <dd class="figure">${value}</dd>
          ${under && html`<dd class="muted">${under}</dd>`}
        </div>`,
    )}
  </dl>`;
}

/**
 * JSON values that somebody may want to see, behind what is said of them. They are text.
 *
 * @param {{ value: unknown, summary?: string, children?: Children }} props
 */
export function Details({ value, summary = "JSON", children }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${open && children}
    ${open && html`<pre tabindex="0">${visible(JSON.stringify(value, null, 2)).replaceAll("\\u{a}", "\n")}</pre>`}
  </details>`;
}

/**
 * @template T
 * @typedef {object} Resource
 * @property {T | null} value The last answer.
 * @property {unknown} problem Why there is no newer one, or null.
 * @property {boolean} loading
 * @property {() => void} reload
 */

/**
 * Read something now, and again on `reload`. An answer stays until the next one, unless `key` changes.
 *
 * @template T
 * @param {string} key What is read: it is read again if this changes.
 * @param {(cancel: AbortSignal) => Promise<T>} load
 * @returns {Resource<T>}
 */
export function useResource(key, load) {
  const [state, setState] = useState({ key, value: /** @type {T | null} */ (null), problem: /** @type {unknown} */ (null), loading: true });
  const running = useRef(/** @type {AbortController | null} */ (null));
  const latest = useRef(load);
  latest.current = load;
  const reload = useCallback(() => {
    running.current?.abort();
    const cancel = new AbortController();
    running.current = cancel;
    setState((before) => ({ ...(before.key === key ? before : { value: null, problem: null }), key, loading: true }));
    latest.current(cancel.signal).then(
      (value) => {
        if (!cancel.signal.aborted) setState({ key, value, problem: null, loading: false });
      },
      (problem) => {
        if (cancel.signal.aborted) return;
        setState((before) => ({ ...before, problem, loading: false }));
        if (!(problem instanceof Problem)) throw problem;
      },
    );
  }, [key]);
  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);
  const current = state.key === key ? state : { value: null, problem: null, loading: true };
  return { value: current.value, problem: current.problem, loading: current.loading, reload };
}

/**
 * Return a function that does what a button is for, and the problem that it met last, or null.
 *
 * @returns {{ problem: unknown, attempt: (work: () => Promise<void>) => Promise<void> }}
 */
export function useAttempt() {
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const attempt = useCallback(async (/** @type {() => Promise<void>} */ work) => {
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error);
      if (!(error instanceof Problem)) throw error;
    }
  }, []);
  return { problem, attempt };
}

/**
 * Return a function that calls another one now, and at most once in a time after that.
 *
 * @param {() => void} call
 * @param {number} [everyMs]
 */
export function useThrottled(call, everyMs = 1_000) {
  const latest = useRef(call);
  latest.current = call;
  const state = useRef({ timer: 0, lastMs: 0 });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  return useCallback(() => {
    const { timer, lastMs } = state.current;
    if (timer) return;
    const waitMs = Math.max(0, lastMs + everyMs - Date.now());
    state.current.timer = setTimeout(() => {
      state.current = { timer: 0, lastMs: Date.now() };
      latest.current();
    }, waitMs);
  }, [everyMs]);
}

/**
 * Return the rows of a flow that have changed since the screen was opened, by key. `call` is called after each change,
 * and when the stream has begun anew.
 *
 * @param {string} flow
 * @param {(key: string) => boolean} isShown Whether the screen shows the row of this key.
 * @param {() => void} call
 * @returns {Record<string, unknown>}
 */
export function useChangedRows(flow, isShown, call) {
  const [rows, setRows] = useState(/** @type {Record<string, unknown>} */ ({}));
  useEffect(() => {
    const take = (/** @type {{ flow: string, key: string, value: unknown }[]} */ changed) => {
      const mine = changed.filter((row) => row.flow === flow && isShown(row.key));
      if (!mine.length) return;
      setRows((before) => ({ ...before, ...Object.fromEntries(mine.map((row) => [row.key, row.value])) }));
      call();
    };
    return onChanges({ rows: take, hello: call });
  }, [flow]);
  return rows;
}

/**
 * What a resource is while there is no value: a problem, or that it is read.
 *
 * @param {{ resource: Resource<any>, what: string }} props
 */
export function Pending({ resource, what }) {
  if (resource.problem) return html`<${ProblemNote} problem=${resource.problem} retry=${resource.reload} />`;
  return resource.value === null ? html`<${Loading} what=${what} />` : null;
}
