// Talks to the service. The token stays in this tab; labels go in bodies, never in addresses.

const KEY = "querycloak-token";
const PATIENCE = 10_000;
let kept = null;  // when the browser forbids storage, the token lasts as long as the page

export const token = {
  get() { try { return sessionStorage.getItem(KEY) ?? kept; } catch { return kept; } },
  set(value) { kept = value; try { sessionStorage.setItem(KEY, value); } catch { /* kept above */ } },
  forget() { kept = null; try { sessionStorage.removeItem(KEY); } catch { /* none was stored */ } },
};

/** What the service answered when it did not do what was asked; status 0: it did not answer. */
export class Fault extends Error {
  constructor(status, message, hint = "") {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

/** Ask the service for JSON. */
export async function ask(path, body = undefined) {
  const headers = { Accept: "application/json" };
  const shown = token.get();
  if (shown) headers.Authorization = `Bearer ${shown}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { headers, method: body === undefined ? "GET" : "POST", credentials: "omit", cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new Fault(0, "The service does not answer.");
  }
  const found = await answer.json().catch(() => null);
  if (answer.ok && found !== null) return found;
  const error = found?.error ?? {};
  throw new Fault(answer.status, error.message ?? `The service answered with status ${answer.status}.`, error.hint);
}
