// The stream of changes. It says at once when it breaks, and connects again. A hidden page does not listen.

import { Problem, address, request } from "./api.js";
import { signal } from "./preact.js";
import { EventParser, backoffMs } from "./sse.js";

/** The console sends something each 10 s. Without it the stream is broken, whatever the network says. */
const SILENT_AFTER_MS = 14_000;

const HIDDEN_AFTER_MS = 30_000;

/**
 * @typedef {object} Connection
 * @property {"connecting" | "live" | "broken" | "asleep"} state
 * @property {number} sinceMs When it got into the state, by the browser's clock.
 * @property {string} why
 * @property {number} retryMs When the next attempt is, by the browser's clock; 0: now, or none.
 */

/** @type {import("../vendor/signals.js").Signal<Connection>} */
export const connection = signal({ state: "connecting", sinceMs: Date.now(), why: "", retryMs: 0 });

/** @typedef {(event: string, data: any) => void} Receiver */

/** The one stream of this page. `listen` begins it anew if what is asked for differs. */
export class ChangeStream {
  #receive;
  #query = "";
  #attempt = 0;
  /** @type {AbortController | null} */
  #running = null;
  #timer = 0;
  #silence = 0;

  /** @param {Receiver} receive Gets the messages of one piece, one after the other. */
  constructor(receive) {
    this.#receive = receive;
    document.addEventListener("visibilitychange", () => this.#onVisibility());
    window.addEventListener("online", () => this.#reconnectSoon());
    window.addEventListener("offline", () => this.#break("This browser has no network."));
  }

  /**
   * Follow the changes that a screen shows.
   *
   * @param {Record<string, string | number>} query
   */
  listen(query) {
    const wanted = address("changes", query);
    if (wanted === this.#query) return;
    this.#query = wanted;
    this.#reconnectSoon();
  }

  /** End it. `listen` begins it again. */
  close() {
    this.#query = "";
    this.#stop();
  }

  #reconnectSoon() {
    this.#attempt = 0;
    this.#connect();
  }

  #stop() {
    clearTimeout(this.#timer);
    clearTimeout(this.#silence);
    this.#running?.abort();
    this.#running = null;
  }

  #onVisibility() {
    if (!document.hidden) {
      clearTimeout(this.#timer);
      if (connection.value.state !== "live") this.#reconnectSoon();
    } else if (connection.value.state === "live") {
      this.#timer = setTimeout(() => {
        this.#stop();
        say("asleep", "Nobody looks at this page.");
      }, HIDDEN_AFTER_MS);
    }
  }

  #heard() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#break("The console has sent nothing for 14 s."), SILENT_AFTER_MS);
  }

  /** @param {string} why */
  #break(why) {
    if (!this.#query) return;
    this.#stop();
    const waitMs = backoffMs(this.#attempt, Math.random());
    this.#attempt += 1;
    say("broken", why, Date.now() + waitMs);
    this.#timer = setTimeout(() => this.#connect(), waitMs);
  }

  async #connect() {
    this.#stop();
    if (!this.#query) return;
    const running = new AbortController();
    this.#running = running;
    if (connection.value.state !== "broken" && connection.value.state !== "live") say("connecting", "");
    this.#heard();
    try {
      const response = await request(this.#query, {
        headers: { Accept: "text/event-stream" },
        signal: running.signal,
        cache: "no-store",
      });
      await this.#read(response, running);
      if (!running.signal.aborted) this.#break("The console has ended the stream.");
    } catch (error) {
      if (running.signal.aborted) return;
      if (error instanceof Problem && error.status === 401) return this.close();
      this.#break(error instanceof Problem && error.status ? error.message : "The console does not answer.");
    }
  }

  /**
   * @param {Response} response
   * @param {AbortController} running
   */
  async #read(response, running) {
    const parser = new EventParser();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    while (reader && !running.signal.aborted) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#heard();
      this.#attempt = 0;
      if (connection.value.state !== "live") say("live", "");
      for (const { event, data } of parser.feed(value)) this.#receive(event, JSON.parse(data));
    }
  }
}

/**
 * @param {Connection["state"]} state
 * @param {string} why
 * @param {number} [retryMs]
 */
function say(state, why, retryMs = 0) {
  connection.value = { state, why, retryMs, sinceMs: Date.now() };
}
