// Each cluster once: what it can and cannot do, and what that costs.

import { get } from "../lib/api.js";
import { asSentence, capitalized, inText, visible } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { flowHref } from "../lib/route.js";
import { Age, Details, Facts, Pending, State, Text, useResource } from "../parts/basics.js";

export function Clusters() {
  const body = useResource("clusters", (cancel) => get("clusters", {}, cancel));
  /** @type {{ at_ms?: number, clusters: Api.ClusterPage[] } | null} */
  const value = body.value;
  return html`<div>
    <h1 tabindex="-1">Clusters</h1>
    <div class="list-head">
      ${value?.at_ms && html`<p class="muted">read <${Age} ms=${value.at_ms} /></p>`}
      <button type="button" disabled=${body.loading} onClick=${body.reload}>${body.loading ? "Asking ..." : "Ask again"}</button>
    </div>
    <${Pending} resource=${body} what="the clusters" />
    <ul class="cards">
      ${value?.clusters.map((cluster) => html`<${Cluster} key=${cluster.alias} cluster=${cluster} />`)}
    </ul>
  </div>`;
}

/** @param {{ cluster: Api.ClusterPage }} props */
function Cluster({ cluster }) {
  const { reachable } = cluster;
  const word = reachable === true ? "answers" : reachable === false ? "does not answer" : "unknown";
  return html`<li class="card">
    <div class="section-head">
      <h2>${visible(cluster.alias)}</h2>
      <${State} word=${word} tone=${reachable === true ? "good" : reachable === false ? "bad" : "unknown"} />
    </div>
    ${cluster.why && html`<p>${visible(asSentence(capitalized(cluster.why)))}</p>`}
    <${Facts} facts=${[
      ["Product", inText(cluster.product || null)],
      ["Version", inText(cluster.version || null)],
      ["Flows", html`${cluster.flows.map((flow, index) => html`${index ? ", " : ""}<a href=${flowHref(flow)}><${Text} text=${flow} /></a>`)}`],
    ]} />
    <${Lacks} lacks=${cluster.lacks} isKnown=${reachable === true || (cluster.lacks ?? []).length > 0} />
    ${(cluster.capabilities ?? []).length > 0 &&
    html`<ul class="plain columns">
      ${(cluster.capabilities ?? []).map(
        (capability) =>
          html`<li key=${capability.name}>
            <${State} word=${capability.name} tone=${capability.can === null ? "unknown" : capability.can ? "good" : "note"} />
            ${capability.costs && html`<span class="muted">: ${visible(capability.costs)}</span>`}
          </li>`,
      )}
    </ul>`}
    <${Details} value=${cluster} summary="All values" />
  </li>`;
}

/** @param {{ lacks: Api.ClusterPage["lacks"], isKnown: boolean }} props */
function Lacks({ lacks, isKnown }) {
  if (!lacks || !isKnown) return html`<p><${State} word="what it cannot do is unknown" tone="unknown" /></p>`;
  if (!lacks.length) return html`<p><${State} word="it lacks nothing that Lockstep uses" tone="good" /></p>`;
  return html`<div>
    <h3>It cannot</h3>
    <ul class="plain">
      ${lacks.map((lack) => {
        const { name, costs } = lack;
        return html`<li key=${name}><${State} word=${name} tone="note" />${costs && `: ${visible(asSentence(costs))}`}</li>`;
      })}
    </ul>
  </div>`;
}
