// Begins a switch: the options, a check that changes nothing, and then the question.

import { switchAction } from "../lib/actions.js";
import { Problem, flowPath, get, post } from "../lib/api.js";
import { asSentence, capitalized, inMoment, visible } from "../lib/format.js";
import { html, useId, useState } from "../lib/preact.js";
import { session } from "../lib/store.js";
import { ActionButton, ReadOnlyNote } from "./action_dialog.js";
import { Code, Pending, Section, State, UnknownNote, useResource } from "./basics.js";

/** @typedef {import("../lib/actions.js").SwitchVerb} SwitchVerb */

/** @type {readonly { verb: SwitchVerb, name: string, when: string }[]} */
const VERBS = [
  { verb: "switchover", name: "Switch over", when: "Both clusters work. Clients move to the target, and no record is lost." },
  { verb: "failover", name: "Fail over", when: "The source is gone. Clients go on with what the target has." },
  { verb: "failback", name: "Fail back", when: "After a switch by this flow: clients come back to its source." },
];

/**
 * @typedef {object} Choices
 * @property {SwitchVerb} verb
 * @property {boolean} drill
 * @property {string} topics Names, separated by commas or blanks.
 * @property {string} cutoff A local time, or "".
 * @property {string} allowedLoss
 * @property {string} diverged
 * @property {boolean} rewind
 * @property {string[]} allow Those of another verb are forgotten with it.
 */

/**
 * Return the options as the API takes them. Pure.
 *
 * @param {Choices} choices
 * @returns {Record<string, unknown>}
 */
export function optionsOf(choices) {
  const { verb } = choices;
  const loss = Number.parseInt(choices.allowedLoss, 10);
  return {
    drill: choices.drill,
    topics: choices.topics.split(/[\s,]+/).filter(Boolean),
    allow: choices.allow,
    ...(choices.rewind ? { rewind_groups: true } : {}),
    ...(choices.cutoff && verb !== "failover" ? { cutoff: new Date(choices.cutoff).toISOString() } : {}),
    ...(verb === "failover" && loss >= 0 ? { allowed_loss: loss } : {}),
    ...(verb === "failback" && choices.diverged ? { diverged: choices.diverged } : {}),
  };
}

/** @param {{ flow: string, onBegun: () => void }} props */
export function SwitchForm({ flow, onBegun }) {
  const [choices, setChoices] = useState(/** @type {Choices} */ ({
    verb: "switchover", drill: true, topics: "", cutoff: "", allowedLoss: "", diverged: "", rewind: false, allow: [],
  }));
  const [check, setCheck] = useState(/** @type {Api.SwitchCheck | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [isChecking, setIsChecking] = useState(false);
  const change = (/** @type {Partial<Choices>} */ part) => {
    setCheck(null); // it was about other options
    setChoices({ ...choices, ...part });
  };
  const options = optionsOf(choices);

  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setProblem(null);
    setCheck(null);
    setIsChecking(true);
    try {
      setCheck(await post(flowPath(flow, "/switches"), { verb: choices.verb, ...options, dry_run: true }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    } finally {
      setIsChecking(false);
    }
  };

  return html`<${Section} title="Begin a switch">
    <${ReadOnlyNote} />
    <form onSubmit=${submit}>
      <fieldset disabled=${!session.value?.may_act}>
        <legend class="hidden">What to do</legend>
        ${VERBS.map(
          ({ verb, name, when }) =>
            html`<label class="check" key=${verb}>
              <input type="radio" name="verb" checked=${choices.verb === verb} onChange=${() => change({ verb, allow: [] })} />
              <span><strong>${name}</strong>. <span class="muted">${when}</span></span>
            </label>`,
        )}
        <label class="check">
          <input type="checkbox" checked=${choices.drill} onChange=${(/** @type {any} */ event) => change({ drill: event.currentTarget.checked })} />
          <span><strong>Drill</strong>. <span class="muted">Every step but the hooks, and the flow goes on at the end.</span></span>
        </label>
        <${MoreOptions} choices=${choices} change=${change} />
        <div class="buttons left">
          <button type="submit" class="main" disabled=${isChecking}>${isChecking ? "Checking ..." : "Check"}</button>
          <span class="muted">It reads both clusters, and changes nothing.</span>
        </div>
      </fieldset>
    </form>
    <div role="alert">${problem && html`<p class="bad-text">${visible(asSentence(capitalized(problem.message)))}</p>`}</div>
    <div aria-live="polite">
      ${check?.unknown && html`<${UnknownNote} reason=${check.unknown} />`}
      ${check && !check.unknown && html`<${CheckResult} check=${check} action=${switchAction(flow, choices.verb, options, check)} onBegun=${onBegun} />`}
    </div>
  <//>`;
}

/** @param {{ choices: Choices, change: (part: Partial<Choices>) => void }} props */
function MoreOptions({ choices, change }) {
  const id = useId();
  const { verb } = choices;
  return html`<details class="options">
    <summary>More options</summary>
    <p>
      <label for=${`${id}t`}>Only these topics</label>
      <input id=${`${id}t`} type="text" value=${choices.topics} spellcheck=${false} onInput=${(/** @type {any} */ event) => change({ topics: event.currentTarget.value })} />
      <span class="muted">Names on the cluster that the clients leave, separated by commas. Empty: all.</span>
    </p>
    ${verb !== "failover" &&
    html`<p>
      <label for=${`${id}c`}>Only what was written before</label>
      <input id=${`${id}c`} type="datetime-local" step="1" value=${choices.cutoff} onInput=${(/** @type {any} */ event) => change({ cutoff: event.currentTarget.value })} />
      <span class="muted">Later records may be missing on the target.</span>
    </p>`}
    ${verb === "failover" &&
    html`<p>
      <label for=${`${id}l`}>Known records that may be lost</label>
      <input id=${`${id}l`} type="number" min="0" value=${choices.allowedLoss} onInput=${(/** @type {any} */ event) => change({ allowedLoss: event.currentTarget.value })} />
      <span class="muted">Empty: none.</span>
    </p>`}
    ${verb === "failback" &&
    html`<p>
      <label for=${`${id}d`}>Records that only the source has</label>
      <select id=${`${id}d`} value=${choices.diverged} onChange=${(/** @type {any} */ event) => change({ diverged: event.currentTarget.value })}>
        <option value="">prevent it</option>
        <option value="copy">are copied first</option>
        <option value="leave">are left, and not copied later</option>
      </select>
    </p>`}
    <label class="check">
      <input type="checkbox" checked=${choices.rewind} onChange=${(/** @type {any} */ event) => change({ rewind: event.currentTarget.checked })} />
      A group that went back on the source also goes back on the target
    </label>
    <${Allowances} verb=${verb} chosen=${choices.allow} onChange=${(/** @type {string[]} */ allow) => change({ allow })} />
  </details>`;
}

/**
 * What a switch refuses unless it is allowed, in the words of the command line.
 *
 * @param {{ verb: string, chosen: string[], onChange: (chosen: string[]) => void }} props
 */
export function Allowances({ verb, chosen, onChange }) {
  const resource = useResource("allowances", (cancel) => get("switch-allowances", {}, cancel));
  /** @type {Api.Allowance[]} */
  const all = resource.value?.allowances ?? [];
  return html`<${Pending} resource=${resource} what="what can be allowed" />
    ${all
      .filter(({ verbs }) => verbs.includes(verb))
      .map(
        ({ name, meaning }) =>
          html`<label class="check" key=${name}>
            <input
              type="checkbox"
              checked=${chosen.includes(name)}
              onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked ? [...chosen, name] : chosen.filter((other) => other !== name))}
            />
            <span><code>${name}</code> <span class="muted">${meaning}</span></span>
          </label>`,
      )}`;
}

/** @param {{ check: Api.SwitchCheck, action: import("../lib/actions.js").Action, onBegun: () => void }} props */
function CheckResult({ check, action, onBegun }) {
  const isRefused = check.refusals.length > 0;
  return html`<div class="card">
    <p>
      <${State} word=${isRefused ? "It would be refused" : "It can begin"} tone=${isRefused ? "bad" : "good"} />
      ${check.source_known_until && ` The source is known up to ${inMoment(Date.parse(check.source_known_until))}.`}
    </p>
    ${isRefused &&
    html`<ul class="plain">
      ${check.refusals.map((refusal) => html`<li key=${refusal.text}>${visible(asSentence(capitalized(refusal.text)))} <${Code} code=${refusal.code} /></li>`)}
    </ul>`}
    ${(check.notes ?? []).length > 0 &&
    html`<ul class="plain">${(check.notes ?? []).map((note) => html`<li key=${note}>Note: ${visible(asSentence(note))}</li>`)}</ul>`}
    ${(check.steps ?? []).length > 0 &&
    html`<ol>${(check.steps ?? []).map((step) => html`<li key=${step.step}><strong>${step.step}</strong>: ${step.meaning ?? step.text ?? ""}</li>`)}</ol>`}
    ${!isRefused && html`<div class="buttons left"><${ActionButton} action=${action} onSent=${onBegun} label=${`${action.title} ...`} /></div>`}
  </div>`;
}
