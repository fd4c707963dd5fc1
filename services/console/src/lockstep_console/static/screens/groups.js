// Consumer groups as readiness for a switch: where each would go on, and why one waits.

import { commandAction } from "../lib/actions.js";
import { flowPath } from "../lib/api.js";
import { asSentence, capitalized, inCount, inNumber, inText, inWords, isKnown, visible } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { onChange } from "../lib/store.js";
import { groupWord, toneOf } from "../lib/tone.js";
import { ActionButton } from "../parts/action_dialog.js";
import { Code, Details, Empty, Loading, ProblemNote, State, UnknownNote } from "../parts/basics.js";
import { ListHead } from "../parts/list_head.js";
import { usePages } from "../parts/pages.js";

/** Groups that are shown at first, and with each "more". */
const SHOWN = 50;

/** @param {{ flow: string }} props */
export function Groups({ flow }) {
  const [filter, setFilter] = useState("");
  const [onlyTrouble, setOnlyTrouble] = useState(false);
  const [shown, setShown] = useState(SHOWN);
  const pages = usePages(flowPath(flow, "/groups"), "groups", { filter, only: onlyTrouble ? "trouble" : "" });
  const live = useRef(pages);
  live.current = pages;
  useEffect(() => onChange("status", (data) => data.flow === flow && live.current.refresh()), [flow]);
  useEffect(() => pages.want(0, shown), [shown, pages.matching]);
  const rows = Array.from({ length: Math.min(shown, pages.matching) }, (_, index) => pages.rowAt(index));
  return html`<div>
    <p>
      A group is exact or behind if its consumers can work on the target now. If it is behind, they read some records
      again, and skip none. <${ActionButton} action=${commandAction(flow, "sync-groups")} />
    </p>
    <${ListHead} pages=${pages} noun="group" filter=${filter} onFilter=${setFilter} onlyTrouble=${onlyTrouble} onOnlyTrouble=${setOnlyTrouble} />
    ${pages.problem !== null && html`<${ProblemNote} problem=${pages.problem} retry=${pages.reload} />`}
    ${pages.unknown && html`<${UnknownNote} reason=${pages.unknown} />`}
    ${!pages.isRead && !pages.problem && html`<${Loading} what="the groups" />`}
    ${pages.isRead && !pages.matching && !pages.unknown && html`<${Empty}>${filter || onlyTrouble ? "No group is like this." : "No group is known."}<//>`}
    <ul class="cards">
      ${rows.map((row, index) => (row ? html`<${GroupCard} key=${row.group} row=${row} />` : html`<li key=${index} class="card muted">Reading ...</li>`))}
    </ul>
    ${pages.matching > shown &&
    html`<p><button type="button" onClick=${() => setShown(shown + SHOWN)}>Show ${inNumber(Math.min(SHOWN, pages.matching - shown))} more</button></p>`}
  </div>`;
}

/** @param {{ row: Api.Group }} props */
function GroupCard({ row }) {
  const word = groupWord(row);
  const reason = row.trouble || row.why;
  const topics = row.topics ?? [];
  return html`<li class="card">
    <div class="section-head">
      <h3>${visible(row.group)}</h3>
      <${State} word=${stateText(row, word)} tone=${toneOf(word)} />
      <span class="muted">${row.synced ? "its offsets are written to the target" : "its offsets are not written to the target"}</span>
    </div>
    ${reason && html`<p>${visible(asSentence(capitalized(reason)))} <${Code} code=${row.trouble ? row.cause?.code : ""} /></p>`}
    <${Members} members=${row.members} />
    ${topics.length > 0 &&
    html`<ul class="plain lines">
      ${topics.map((topic) => html`<li key=${topic.topic}><${TopicLine} topic=${topic} /></li>`)}
    </ul>`}
    <${Details} value=${row} summary="All values" />
  </li>`;
}

/**
 * @param {Api.Group} row
 * @param {string} word
 */
function stateText(row, word) {
  if (word === "behind") return `behind: at most ${inCount(row.records, "record")} read again`;
  if (word === "waiting" && row.waiting) return `waiting in ${inCount(row.waiting, "partition")}`;
  return word;
}

/** @param {{ members: unknown }} props */
function Members({ members }) {
  if (members === undefined) return null;
  if (members === null) return html`<p><${State} word="whether it works on the target is unknown" tone="unknown" /></p>`;
  const names = Array.isArray(members) ? members.map(memberName) : Object.keys(Object(members));
  if (!names.length) return null;
  return html`<p><${State} word=${`works on the target: ${[...new Set(names)].join(", ")}`} tone="note" /></p>`;
}

/** @param {unknown} member */
function memberName(member) {
  if (typeof member === "object" && member !== null) {
    const { client_id: id, client, host } = /** @type {Record<string, unknown>} */ (member);
    return `${inText(id ?? client)}${host ? ` (${inText(host)})` : ""}`;
  }
  return inText(member);
}

/** @param {{ topic: Api.GroupTopic }} props */
function TopicLine({ topic }) {
  const counts = [
    topic.exact ? `${inCount(topic.exact, "partition")} exact` : "",
    topic.behind ? `${inCount(topic.behind, "partition")} behind${isKnown(topic.records) ? `, ${inCount(topic.records, "record")} read again` : ""}` : "",
    topic.waiting ? `${inCount(topic.waiting, "partition")} waiting` : "",
  ].filter(Boolean);
  const word = inWords(topic.place);
  return html`<${State} word=${word} tone=${toneOf(word)} />
    ${" "}<strong>${visible(topic.topic)}</strong>${" "}
    <span>${counts.join(", ")}</span>
    ${topic.why ? html`<span class="muted">: ${visible(topic.why)}</span>` : ""}`;
}
