// Prometheus' text exposition, as far as the page needs it: samples by name and labels, and quantiles of histograms.

export interface Sample {
  labels: Record<string, string>;
  value: number;
}
export type Metrics = Map<string, Sample[]>;

export function parseMetrics(text: string): Metrics {
  const out: Metrics = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!match) continue;
    const labels: Record<string, string> = {};
    for (const [, key, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) if (key) labels[key] = (value ?? "").replace(/\\(.)/g, "$1");
    const name = match[1] ?? "";
    const value = match[3] === "+Inf" ? Infinity : Number(match[3]);
    const samples = out.get(name);
    if (samples) samples.push({ labels, value });
    else out.set(name, [{ labels, value }]);
  }
  return out;
}

export function sum(metrics: Metrics, name: string, where: Record<string, string> = {}): number {
  return (metrics.get(name) ?? []).filter((sample) => Object.entries(where).every(([k, v]) => sample.labels[k] === v)).reduce((total, s) => total + s.value, 0);
}

/** Of the observations between two readings; all of them when `before` is not given. undefined: there were none. */
export function quantile(q: number, name: string, now: Metrics, before?: Metrics): number | undefined {
  const buckets = new Map<number, number>();
  const add = (metrics: Metrics, sign: number) => {
    for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
      const bound = labels["le"] === "+Inf" ? Infinity : Number(labels["le"]);
      buckets.set(bound, (buckets.get(bound) ?? 0) + sign * value);
    }
  };
  add(now, 1);
  if (before) add(before, -1);
  const bounds = [...buckets.keys()].sort((a, b) => a - b);
  const all = buckets.get(Infinity) ?? 0;
  if (all <= 0) return undefined;
  let below = 0;
  let last = 0;
  for (const bound of bounds) {
    const upTo = buckets.get(bound) ?? 0;
    if (upTo >= q * all) {
      if (bound === Infinity) return last;
      return upTo === below ? bound : last + ((bound - last) * (q * all - below)) / (upTo - below);
    }
    below = upTo;
    last = bound;
  }
  return last;
}
