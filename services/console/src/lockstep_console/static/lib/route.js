// Which screen is shown, by the address behind `#`. The console gives the page at `/` only. Pure, but for `route`.

import { signal } from "./preact.js";

/** @typedef {{ screen: string, flow: string, query: Record<string, string> }} Route */

/** The screens of a flow in the order in which they are offered, with their names. "" is the flow itself. */
export const FLOW_SCREENS = /** @type {const} */ ([
  ["", "Flow"],
  ["partitions", "Partitions"],
  ["topics", "Topics"],
  ["groups", "Groups"],
  ["switch", "Switch"],
  ["verify", "Verify"],
  ["plan", "Plan"],
  ["events", "Events"],
  ["records", "Control topics"],
]);

/**
 * Return the route of an address such as `#/flows/A-%3EB/groups?filter=x`.
 *
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [head = "", flow = "", screen = ""] = path.split("/");
  if (head === "flows" && flow) {
    return { screen: `flow/${screen}`, flow: decoded(flow), query };
  }
  return { screen: head || "overview", flow: "", query };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand, with a percent sign
  }
}

/**
 * Return the address of a screen of a flow.
 *
 * @param {string} flow
 * @param {string} [screen]
 * @param {Record<string, string | number>} [query]
 */
export function flowHref(flow, screen = "", query = {}) {
  const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
  return `#/flows/${encodeURIComponent(flow)}${screen ? `/${screen}` : ""}${text ? `?${text}` : ""}`;
}

/**
 * Return the address of what a code means; without a code that of all alerts.
 *
 * @param {string} [code]
 */
export function codeHref(code = "") {
  return `#/codes${code ? `?${new URLSearchParams({ code })}` : ""}`;
}

/** The route of the page. */
export const route = signal(parseRoute(""));

/** Follow the address of the page. */
export function followAddress() {
  const read = () => {
    route.value = parseRoute(location.hash);
  };
  window.addEventListener("hashchange", read);
  read();
}
