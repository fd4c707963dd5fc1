// What alerts and codes mean, and what to do: the texts of this release, so that nobody needs a way to the internet.

import { get } from "../lib/api.js";
import { asSentence, capitalized, visible } from "../lib/format.js";
import { html, useId, useState } from "../lib/preact.js";
import { codeHref, route } from "../lib/route.js";
import { Empty, Facts, Pending, Section, State, useResource } from "../parts/basics.js";

const ALERT = "alert";

/** Lines that are shown of a search. */
const SHOWN = 50;

export function Codes() {
  const { code = "" } = route.value.query;
  return html`<div>
    <h1 tabindex="-1">${code ? visible(code) : "Alerts and codes"}</h1>
    ${code ? html`<${Meaning} code=${code} />` : html`<${AllCodes} />`}
  </div>`;
}

/** @param {{ code: string }} props */
function Meaning({ code }) {
  const body = useResource(`code ${code}`, (cancel) => get(`codes/${encodeURIComponent(code)}`, {}, cancel));
  /** @type {Api.CodeEntry[]} */
  const entries = body.value?.entries ?? [];
  return html`<div>
    <p><a href=${codeHref()}>All alerts and codes</a></p>
    <${Pending} resource=${body} what="what it means" />
    <ul class="cards">
      ${entries.map((entry) => html`<li class="card" key=${entry.kind}><${Entry} entry=${entry} /></li>`)}
    </ul>
  </div>`;
}

/** @param {{ entry: Api.CodeEntry }} props */
function Entry({ entry }) {
  const base = entry.page.slice(0, entry.page.indexOf("docs/"));
  /** @type {[name: string, value: any][]} */
  const facts = [
    ["Kind", capitalized(entry.kind)],
    ["Severity", entry.severity && html`<${State} word=${entry.severity} />`],
    [entry.kind === ALERT ? "It fires at" : "It says", withLinks(entry.kind === ALERT ? entry.title : capitalized(entry.title), base)],
    ["It means", withLinks(capitalized(entry.meaning), base)],
    ["Look at", withLinks(entry.look_at ?? "", base)],
    ["Do", withLinks(capitalized(entry.fix), base)],
    ["Page", html`<a href=${entry.page} target="_blank" rel="noreferrer">${entry.page}</a>`],
  ];
  return html`<div class="meaning"><${Facts} facts=${facts.filter(([, value]) => value)} /></div>`;
}

/**
 * Return a text whose pages of the documentation are links.
 *
 * @param {string} text
 * @param {string} base The address that stands before their paths.
 */
function withLinks(text, base) {
  if (!text) return "";
  return asSentence(text)
    .split(/(docs\/[\w./-]+(?:#[\w-]+)?)/)
    .map((part, index) => (index % 2 ? html`<a href=${base + part} target="_blank" rel="noreferrer">${part}</a>` : visible(part)));
}

function AllCodes() {
  const id = useId();
  const [search, setSearch] = useState("");
  const body = useResource("codes", (cancel) => get("codes", {}, cancel));
  /** @type {Api.CodeLine[]} */
  const codes = body.value?.codes ?? [];
  const found = search ? matching(codes, search) : codes.filter((line) => line.kind === ALERT);
  return html`<div>
    <p>
      The alerts of Lockstep, with what to do. The search also finds events, reasons, checks of <code>lockstep doctor</code>, hazards
      of a plan, and errors of Kafka.
    </p>
    <div class="list-head">
      <div>
        <label for=${id}>Search codes and words</label>
        <input id=${id} type="search" value=${search} autocomplete="off" spellcheck=${false}
          onInput=${(/** @type {any} */ event) => setSearch(event.currentTarget.value)} />
      </div>
      <p class="muted" aria-live="polite">${search && body.value && `${found.length} found`}</p>
    </div>
    <${Pending} resource=${body} what="the codes" />
    ${body.value && !found.length && html`<${Empty}>Nothing is called so.<//>`}
    <${Section} title=${search ? "Found" : "Alerts"}>
      <ul class="plain lines">
        ${found.slice(0, SHOWN).map(
          (line) =>
            html`<li key=${`${line.kind} ${line.code}`}>
              <a href=${codeHref(line.code)}>${visible(line.code)}</a>${" "}
              ${line.severity && html`<${State} word=${line.severity} />${" "}`}
              <span class="muted">${line.kind === ALERT ? "" : `${line.kind}: `}${visible(asSentence(capitalized(line.title)))}</span>
            </li>`,
        )}
      </ul>
      ${found.length > SHOWN && html`<p class="muted">and ${found.length - SHOWN} more: search for more words.</p>`}
    <//>
  </div>`;
}

/**
 * Return the lines that have all words of a search in their code, kind or title. Pure.
 *
 * @param {Api.CodeLine[]} codes
 * @param {string} search
 */
export function matching(codes, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return codes.filter((line) => {
    const text = `${line.code} ${line.kind} ${line.title}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
