// Requests to berth and, through its relay, to the cluster. Errors are the server's own words.

export interface About {
  version: string;
  live: boolean;
  recording: boolean;
  allowsChanges: boolean;
  namespace: string;
  context?: string;
  server?: string;
  user?: string;
  explain: boolean;
  whatIf: boolean;
  metrics: boolean;
}

export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new RequestError(0, "berth does not answer");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    // Not JSON: the text is the message.
  }
  throw new RequestError(response.status, message || `${response.status} ${response.statusText}`);
}

export async function getJson<T>(path: string): Promise<T> {
  return (await request(path, { headers: { Accept: "application/json" } })).json() as Promise<T>;
}

export async function getText(path: string): Promise<string> {
  return (await request(path)).text();
}

export async function sendJson<T>(method: string, path: string, body: unknown, type = "application/json"): Promise<T> {
  return (await request(path, { method, headers: { "Content-Type": type, Accept: "application/json" }, body: JSON.stringify(body) })).json() as Promise<T>;
}

/** Each line's document, as it comes; ends with the stream. `body`: posted. */
export async function* lines(path: string, options: { body?: Blob; signal?: AbortSignal } = {}): AsyncGenerator<unknown[]> {
  const response = await request(path, options.body ? { method: "POST", body: options.body, signal: options.signal } : { signal: options.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop() ?? "";
      if (parts.length > 0) yield parts.map((line) => JSON.parse(line) as unknown);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export function podPath(ns: string, name: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(ns)}/pods/${encodeURIComponent(name)}`;
}

export function nodePath(name: string): string {
  return `/api/v1/nodes/${encodeURIComponent(name)}`;
}
