// What happened in a flow, newest first, as it happens. The list can be held.

import { flowPath, get, saveJson } from "../lib/api.js";
import { inMoment, inWords, visible } from "../lib/format.js";
import { html, useEffect, useId, useRef, useState } from "../lib/preact.js";
import { onChange } from "../lib/store.js";
import { Code, Details, Empty, Pending, ProblemNote, State, UnknownNote, useAttempt, useResource } from "../parts/basics.js";

const PAGE = 200;

/** @param {{ flow: string }} props */
export function Events({ flow }) {
  const id = useId();
  const [kind, setKind] = useState("");
  const [isHeld, setIsHeld] = useState(false);
  const [lines, setLines] = useState(/** @type {Api.EventLine[]} */ ([]));
  const [waiting, setWaiting] = useState(/** @type {Api.EventLine[]} */ ([]));
  const [isMore, setIsMore] = useState(false);
  const body = useResource(`${flow} events`, (cancel) => get(flowPath(flow, "/events"), { limit: PAGE }, cancel));
  const held = useRef(isHeld);
  held.current = isHeld;
  useEffect(() => {
    if (!body.value) return;
    setLines(body.value.events);
    setIsMore(body.value.older);
  }, [body.value]);
  useEffect(
    () =>
      onChange("events", (/** @type {Api.EventLine[]} */ news) => {
        const mine = news.filter((event) => event.flow === undefined || event.flow === flow).toReversed();
        (held.current ? setWaiting : setLines)((before) => joined(mine, before));
      }),
    [flow],
  );
  const release = () => {
    setLines((before) => joined(waiting, before));
    setWaiting([]);
    setIsHeld(false);
  };
  const { problem, attempt } = useAttempt();
  const readEarlier = async () => {
    const more = await get(flowPath(flow, "/events"), { limit: PAGE, before_ms: timeOf(lines.at(-1)) });
    setIsMore(more.older);
    setLines((before) => joined(before, more.events));
  };
  const kinds = [...new Set(lines.map((line) => line.kind))].sort();
  const shown = kind ? lines.filter((line) => line.kind === kind) : lines;
  return html`<div>
    <div class="list-head">
      <div>
        <label for=${id}>Kind</label>
        <select id=${id} value=${kind} onChange=${(/** @type {any} */ event) => setKind(event.currentTarget.value)}>
          <option value="">all</option>
          ${kinds.map((name) => html`<option key=${name} value=${name}>${inWords(name)}</option>`)}
        </select>
      </div>
      <button type="button" aria-pressed=${isHeld} onClick=${() => (isHeld ? release() : setIsHeld(true))}>
        ${isHeld ? `Go on (${waiting.length} new)` : "Hold the list"}
      </button>
      <button type="button" onClick=${() => saveJson(shown, `events-${flow}.json`)}>Download</button>
    </div>
    <${Pending} resource=${body} what="the events" />
    ${body.value?.unknown && html`<${UnknownNote} reason=${body.value.unknown} />`}
    ${body.value && !body.value.unknown && !shown.length && html`<${Empty}>No event is known.<//>`}
    <ul class="events" aria-label="Events, newest first">
      ${shown.map((line) => html`<${EventRow} key=${keyOf(line)} line=${line} />`)}
    </ul>
    ${problem !== null && html`<${ProblemNote} problem=${problem} />`}
    ${isMore && html`<button type="button" onClick=${() => attempt(readEarlier)}>Show earlier ones</button>`}
  </div>`;
}

/** @param {Api.EventLine | undefined} line */
function timeOf(line) {
  return line?.timestamp_ms ?? line?.at_ms ?? 0;
}

/** @param {Api.EventLine} line */
function keyOf(line) {
  return line.offset === undefined ? `${timeOf(line)} ${line.kind} ${line.about ?? ""}` : `${line.partition} ${line.offset}`;
}

/**
 * Return both lists in their order, each line once. Pure.
 *
 * @param {Api.EventLine[]} first
 * @param {Api.EventLine[]} second
 */
export function joined(first, second) {
  return [...new Map([...first, ...second].map((line) => [keyOf(line), line])).values()];
}

/** @param {{ line: Api.EventLine }} props */
function EventRow({ line }) {
  return html`<li>
    <span class="muted moment">${inMoment(timeOf(line))}</span>
    <span>
      <${State} word=${inWords(line.kind)} tone=${line.warning ? "note" : "plain"} />
      ${" "}<strong>${visible(line.about)}</strong> ${visible(line.text)}
      <${Details} value=${line}><p>What it means: <${Code} code=${line.kind} /></p><//>
    </span>
  </li>`;
}
