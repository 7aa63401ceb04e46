// The API as the console asks it. Nothing here knows what is shown.

const base = new URL("../v1/", document.baseURI);
const tokenKey = "muster-token";

// Failure is an answer that is an error, or none at all (status 0).
export class Failure extends Error {
  constructor(status, message, problems) {
    super(message);
    this.status = status;
    this.problems = problems ?? [];
  }

  // notOffered reports whether the server has no such call; that it knows no such job
  // is another matter.
  get notOffered() {
    return this.status === 405 || this.status === 501 || (this.status === 404 && !this.message.startsWith("there is no job"));
  }
}

// token is what the user signed in with; it lives as long as the browser's tab.
export function token() {
  return sessionStorage.getItem(tokenKey) ?? "";
}

export function setToken(value) {
  if (value) sessionStorage.setItem(tokenKey, value);
  else sessionStorage.removeItem(tokenKey);
}

async function ask(path, options, accept) {
  const headers = { Accept: accept };
  if (token()) headers.Authorization = "Bearer " + token();
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, base), { ...options, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "The server does not answer. Is muster up running on it?");
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function failure(response) {
  let told;
  try {
    told = (await response.json()).error;
  } catch {
    // Not one of ours: a proxy's, say. The status has to do.
  }
  return new Failure(response.status, told?.message ?? `The server answered with status ${response.status}.`, told?.problems);
}

// get asks for a value.
export async function get(path, signal) {
  return (await ask(path, { signal }, "application/json")).json();
}

// post sends a value and returns the answer.
export async function post(path, value, signal) {
  return (await ask(path, { method: "POST", body: JSON.stringify(value), signal }, "application/json")).json();
}

// text streams an answer, piece by piece.
export async function* text(path, signal) {
  yield* pieces(await ask(path, { signal }, "text/plain"));
}

async function* pieces(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

// lines streams an answer of JSON values, one on each line; empty ones are signs of life.
async function* lines(path, signal) {
  let rest = "";
  for await (const piece of pieces(await ask(path, { signal }, "application/x-ndjson"))) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop();
    for (const line of parts) if (line) yield JSON.parse(line);
  }
}

const longestPause = 10_000;

// Live follows the cluster: the latest snapshot, whether there is a connection, and
// who wants to know. It reads the watch with fetch, as an EventSource cannot carry a
// token; and it lets go while the tab is hidden, because a browser opens only six
// connections to one server.
export class Live {
  constructor() {
    this.snapshot = null;
    this.state = "connecting"; // connecting, live, lost
    this.error = null;
    this.listeners = new Set();
    document.addEventListener("visibilitychange", () => this.start());
  }

  // start connects anew, with the token of now.
  start() {
    this.stopping?.abort();
    if (document.hidden) return;
    this.stopping = new AbortController();
    this.follow(this.stopping.signal);
  }

  async follow(signal) {
    for (let pause = 1000; !signal.aborted; pause = Math.min(2 * pause, longestPause)) {
      try {
        for await (const snapshot of lines("watch", signal)) {
          pause = 1000;
          this.snapshot = snapshot;
          this.tell("live", null);
        }
        this.tell("lost", new Failure(0, "The server ended the connection."));
      } catch (error) {
        if (signal.aborted) return;
        this.tell("lost", error instanceof Failure ? error : new Failure(0, "The connection to the server broke."));
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  tell(state, error) {
    this.state = state;
    this.error = error;
    for (const f of [...this.listeners]) f();
  }
}
