// The page: its head with who looks and whether it is live, the screen of the address, and what is asked.

import { signInNeeded } from "./lib/api.js";
import { asSentence, capitalized, inClock, visible, wholeTime } from "./lib/format.js";
import { html, render, useEffect, useState } from "./lib/preact.js";
import { FLOW_SCREENS, codeHref, flowHref, followAddress, route } from "./lib/route.js";
import { decisions, decisionsLeftOut, flowNames, isStale, keepTime, load, loadProblem, loaded, now, session, stream } from "./lib/store.js";
import { connection } from "./lib/stream.js";
import { ActionDialog } from "./parts/action_dialog.js";
import { Age, Loading, ProblemNote, State, Text } from "./parts/basics.js";
import { SentCommands } from "./parts/outcome.js";
import { SignInDialog, SignInPage, hasToken, openSignIn, signOut } from "./parts/sign_in.js";
import { Overview } from "./screens/overview.js";

/** @typedef {(props: { flow: string }) => any} Screen */

/**
 * The screens: each is loaded when it is opened first. What it follows is asked of the stream.
 *
 * @type {Readonly<Record<string, { load: () => Promise<Screen>, follows?: Record<string, string | number>, isAlone?: boolean, followsLag?: boolean }>>}
 */
const SCREENS = {
  overview: { load: async () => Overview },
  clusters: { load: async () => (await import("./screens/clusters.js")).Clusters },
  codes: { load: async () => (await import("./screens/codes.js")).Codes },
  "flow/": { load: async () => (await import("./screens/flow.js")).Flow, followsLag: true },
  "flow/partitions": { load: async () => (await import("./screens/partitions.js")).Partitions, follows: { worst: 20 }, isAlone: true },
  "flow/topics": { load: async () => (await import("./screens/topics.js")).Topics },
  "flow/groups": { load: async () => (await import("./screens/groups.js")).Groups },
  "flow/switch": { load: async () => (await import("./screens/switch.js")).Switch, follows: { rows: "switch,switch-group,switch-topic" } },
  "flow/verify": { load: async () => (await import("./screens/verify.js")).Verify, follows: { rows: "verify,verification" }, isAlone: true },
  "flow/plan": { load: async () => (await import("./screens/plan.js")).Plan },
  "flow/events": { load: async () => (await import("./screens/events.js")).Events },
  "flow/records": { load: async () => (await import("./screens/records.js")).Records },
};

/** Screens that were loaded: the second time there is nothing to wait for. */
const ready = new Map(/** @type {[string, Screen][]} */ ([["overview", Overview]]));

function App() {
  const { screen, flow } = route.value;
  const mayRead = !signInNeeded.value;
  useEffect(() => {
    // Every screen follows all flows, for what waits for a decision. Long lists follow their own flow alone.
    const { isAlone, followsLag, follows } = SCREENS[screen] ?? {};
    if (mayRead) stream.listen({ ...(isAlone ? { flow } : {}), ...(followsLag ? { lag: flow } : {}), ...follows });
  }, [screen, flow, mayRead]);
  return html`<${Header} />
    <${StaleNote} />
    <main id="main" tabindex="-1" class=${isStale.value ? "stale" : ""}>
      ${mayRead ? html`<${Content} key=${JSON.stringify(route.value)} screen=${screen} flow=${flow} />` : html`<${SignInPage} />`}
      <${SentCommands} />
    </main>
    <${Footer} />
    <${ActionDialog} />
    <${SignInDialog} />`;
}

function Header() {
  const { screen, flow } = route.value;
  const waiting = decisions.value.length + decisionsLeftOut.value;
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault(); // the address is the screen's
    document.getElementById("main")?.focus();
  };
  return html`<header>
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <a class="brand" href="#/">Lockstep</a>
    <nav aria-label="Console">
      <a href="#/" aria-current=${screen === "overview" ? "page" : undefined}>
        Overview${waiting > 0 && html` <span class="badge">${waiting}<span class="hidden">${waiting === 1 ? " decision waits" : " decisions wait"}</span></span>`}
      </a>
      <a href="#/clusters" aria-current=${screen === "clusters" ? "page" : undefined}>Clusters</a>
      <a href=${codeHref()} aria-current=${screen === "codes" ? "page" : undefined}>Alerts</a>
      <${FlowPicker} flow=${flow} />
    </nav>
    <div class="who"><${Liveness} /><${Who} /></div>
  </header>`;
}

/** @param {{ flow: string }} props */
function FlowPicker({ flow }) {
  const names = flowNames.value;
  if (!names.length) return null;
  const open = (/** @type {any} */ event) => {
    if (event.currentTarget.value) location.hash = flowHref(event.currentTarget.value);
  };
  return html`<label>
    <span class="hidden">Open a flow</span>
    <select value=${names.includes(flow) ? flow : ""} onChange=${open}>
      <option value="">Flow ...</option>
      ${names.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select>
  </label>`;
}

/** Whether changes come as they happen. */
function Liveness() {
  const { state } = connection.value;
  const words = { connecting: "connecting", live: "live", broken: "not live", asleep: "resting" };
  const tones = /** @type {const} */ ({ connecting: "note", live: "good", broken: "bad", asleep: "rest" });
  return html`<${State} word=${words[state]} tone=${tones[state]} />`;
}

function Who() {
  const who = session.value;
  if (!who) return null;
  const name = who.may_act ? visible(who.user) : "read-only";
  return html`<span class="muted" title=${who.why_read_only}>${name}</span>
    ${!who.may_act && html`<button type="button" class="quiet" onClick=${openSignIn}>${who.takes_token ? "Sign in" : "Why?"}</button>`}
    ${hasToken() && html`<button type="button" class="quiet" onClick=${signOut}>Sign out</button>`}`;
}

/** A screen reader says this note when it appears: the region itself is always there. */
function StaleNote() {
  const { state, why, sinceMs, retryMs } = connection.value;
  return html`<div class="stale-note" role="alert">
    ${state === "broken" &&
    html`<p>
      <span class="mark" aria-hidden="true">✕</span>
      ${" "}<strong>This page has not been live since ${inClock(sinceMs)}.</strong> ${visible(asSentence(why))} <${Retry} retryMs=${retryMs} />
    </p>`}
  </div>`;
}

/** @param {{ retryMs: number }} props */
function Retry({ retryMs }) {
  void now.value; // it counts down
  const leftMs = retryMs - Date.now();
  return html`<span aria-hidden="true">${leftMs > 0 ? `It tries again in ${wholeTime(leftMs + 999)}.` : "It tries again now."}</span>`;
}

/** @param {{ screen: string, flow: string }} props */
function Content({ screen, flow }) {
  const isUnknownFlow = flow !== "" && loaded.value && !flowNames.value.includes(flow);
  if (loadProblem.value && !loaded.value) {
    return html`<h1 tabindex="-1">Lockstep</h1><${ProblemNote} problem=${loadProblem.value} retry=${() => void load()} />`;
  }
  if (!loaded.value) return html`<${Loading} what="the flows" />`;
  if (!SCREENS[screen] || isUnknownFlow) return html`<${NothingHere} flow=${isUnknownFlow ? flow : ""} />`;
  if (!flow) return html`<${Shown} screen=${screen} flow="" />`;
  return html`<div>
    <h1 tabindex="-1"><${Text} text=${flow} /></h1>
    <nav class="tabs" ref=${showTab} aria-label=${`Flow ${visible(flow)}`}>
      ${FLOW_SCREENS.map(
        ([name, title]) =>
          html`<a key=${name} href=${flowHref(flow, name)} aria-current=${screen === `flow/${name}` ? "page" : undefined}>${title}</a>`,
      )}
    </nav>
    <${Shown} screen=${screen} flow=${flow} />
  </div>`;
}

/**
 * Bring the tab of the screen into sight: on a phone there is no room for all of them.
 *
 * @param {HTMLElement | null} tabs
 */
function showTab(tabs) {
  const tab = /** @type {HTMLElement | null} */ (tabs?.querySelector("[aria-current]"));
  if (tabs && tab) tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
}

/** @param {{ flow: string }} props */
function NothingHere({ flow }) {
  const sentence = flow ? `The file has no flow ${flow}. It has these:` : "There is no such page. These are the flows:";
  return html`<h1 tabindex="-1">Not here</h1>
    <p><${Text} text=${sentence} /></p>
    <ul class="plain">${flowNames.value.map((name) => html`<li key=${name}><a href=${flowHref(name)}><${Text} text=${name} /></a></li>`)}</ul>`;
}

/** @param {{ screen: string, flow: string }} props */
function Shown({ screen, flow }) {
  const [, redraw] = useState(0);
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const Screen = ready.get(screen);
  useEffect(() => {
    void SCREENS[screen]?.load().then(
      (part) => {
        ready.set(screen, part);
        redraw((count) => count + 1);
      },
      () => setProblem("This part of the console cannot be loaded. Reload the page."),
    );
  }, [screen]);
  useEffect(() => {
    if (Screen) showTitle(screen, flow);
  }, [screen, flow, Screen !== undefined]);
  if (problem) return html`<${ProblemNote} problem=${problem} />`;
  return Screen ? html`<${Screen} flow=${flow} />` : html`<${Loading} what="the screen" />`;
}

let isFirst = true;

/**
 * Say where the page is now: in its title, and by moving the focus to its heading. The first screen leaves it alone.
 *
 * @param {string} screen
 * @param {string} flow
 */
function showTitle(screen, flow) {
  const part = FLOW_SCREENS.find(([name]) => screen === `flow/${name}`)?.[1] ?? capitalized(screen);
  document.title = `${flow ? `${part} of ${visible(flow)}` : part} - Lockstep`;
  if (!isFirst) document.querySelector("h1")?.focus();
  isFirst = false;
}

function Footer() {
  const who = session.value;
  return html`<footer>
    ${who?.file && html`<span>${visible(who.file)}</span><span>${visible(who.instance)}</span>`}
    ${who && html`<span>Lockstep ${visible(who.version)}</span>`}
    ${who && html`<span>opened <${Age} ms=${who.at_ms} /></span>`}
    <a href="api/v1/openapi.json">API</a>
    <a href="metrics">Metrics</a>
  </footer>`;
}

followAddress();
keepTime();
void load();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
