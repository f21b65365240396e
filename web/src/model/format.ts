// Amounts, times and counts in words for people.
import type { Resource } from "./rows";

const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** "1500m" is said 1.5, bytes as 3.2 Gi. */
export function amount(resource: Resource, value: number): string {
  if (resource === "cpu") return trimmed(value / 1000);
  if (resource !== "memory") return String(value);
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && unit < binary.length - 1) {
    rest /= 1024;
    ++unit;
  }
  return `${trimmed(rest)} ${binary[unit] ?? ""}`.trim();
}

function trimmed(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** "1 pod", "1,200 pods" */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** As kubectl's AGE: "45s", "12m", "5h", "9d". */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

/** "02:14 (12m)", with the date where it is another day; of seconds since 1970. */
export function sinceWords(seconds: number, nowMs: number): string {
  const at = new Date(seconds * 1000);
  const isToday = at.toDateString() === new Date(nowMs).toDateString();
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return `${isToday ? "" : `${at.toLocaleDateString("en", { month: "short", day: "numeric" })} `}${time} (${duration(nowMs / 1000 - seconds)})`;
}

/** "a, b, c and 4 more" */
export function some(names: string[], most = 3): string {
  return names.length <= most + 1 ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${count(names.length - most)} more`;
}

export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function dateAndClock(ms: number): string {
  const date = new Date(ms);
  return `${date.toISOString().slice(0, 10)} ${date.toLocaleTimeString("en-GB")}`;
}

/** By which names sort as people count: node-2 before node-10. */
export function sortKey(name: string): string {
  return name.replace(/\d+/g, (digits) => digits.padStart(9, "0"));
}
