// A recording: rows in order of time, and the cluster at any of them.
import { Cluster } from "./cluster";
import type { ObjectRow } from "./rows";

export type TimedRow = ObjectRow & { t: number };

const kKeyframe = 20_000;

export class Timeline {
  readonly rows: TimedRow[] = [];
  /** Milliseconds since 1970. */
  start = 0;
  source = "";
  problems: string[] = [];
  private readonly keyframes: { at: number; rows: ObjectRow[] }[] = [];
  private at = 0;
  /** Milliseconds since the start: the moment that `cluster` shows. */
  time = 0;

  constructor(readonly cluster: Cluster = new Cluster()) {}

  /** Milliseconds: to the recording's last line, whether or not that changed anything that is shown. */
  end = 0;

  get length(): number {
    return Math.max(this.end, this.rows[this.rows.length - 1]?.t ?? 0);
  }

  /** To the state at `time`: on by single rows, back from the latest keyframe. Going back empties the log. */
  seek(time: number): void {
    if (time < this.time) this.goBack(time);
    // What is there at the start is no news.
    let row: TimedRow | undefined;
    while ((row = this.rows[this.at]) && row.t <= time) {
      this.cluster.tellsNews = row.t > 0;
      if (this.at > 0 && this.at % kKeyframe === 0 && !this.keyframes.some((one) => one.at === this.at)) this.keep();
      this.cluster.apply(row, this.start + row.t);
      ++this.at;
    }
    this.time = time;
  }

  private keep(): void {
    const rows: ObjectRow[] = [];
    for (const node of this.cluster.nodes.values()) if (node.row) rows.push(node.row);
    for (const pod of this.cluster.pods.values()) rows.push(pod);
    rows.push(...this.cluster.budgets.values());
    this.keyframes.push({ at: this.at, rows });
  }

  private goBack(time: number): void {
    const until = upperBound(this.rows, time);
    const frame = this.keyframes.filter((one) => one.at <= until).reduce<{ at: number; rows: ObjectRow[] }>((a, b) => (b.at > a.at ? b : a), { at: 0, rows: [] });
    this.cluster.forget();
    this.cluster.log.clear();
    for (const row of frame.rows) this.cluster.apply(row, 0);
    this.at = frame.at;
  }
}

/** How many rows are at or before `time`. */
function upperBound(rows: TimedRow[], time: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.t ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
