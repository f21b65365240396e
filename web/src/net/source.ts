// What the page shows: the live cluster, or a recording at some moment.
import { Cluster } from "../model/cluster";
import { pastOf } from "../model/happenings";
import type { LiveRow } from "../model/rows";
import { Timeline, type TimedRow } from "../model/timeline";
import { RequestError, lines } from "./api";

export interface Problem {
  what: string;
  message: string;
  /** The namespace that is shown nevertheless. */
  only?: string;
}

/** Tells its listeners, at most once a frame, that something changed. */
export abstract class Source {
  abstract readonly cluster: Cluster;
  private readonly listeners = new Set<() => void>();
  private isTelling = false;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Milliseconds since 1970: the moment that is shown. */
  abstract now(): number;

  protected changed(): void {
    if (this.isTelling) return;
    this.isTelling = true;
    nextFrame(() => {
      this.isTelling = false;
      for (const listener of this.listeners) listener();
    });
  }
}

/** Pages in the background get no frames, but go on a little. */
function nextFrame(run: () => void): void {
  if (document.hidden) setTimeout(run, 500);
  else requestAnimationFrame(run);
}

const kSilenceMs = 15_000;
/** What happened before the page was opened is told as far back as clusters keep their events. */
const kPastMs = 3_600_000;
const kFrameMs = 10;

export class Live extends Source {
  cluster = new Cluster();
  status: "connecting" | "live" | "lost" | "ended" = "connecting";
  /** Why it was lost. */
  reason = "";
  problems: Problem[] = [];
  isSynced = false;
  private filling: Cluster = this.cluster;
  private queue: LiveRow[] = [];
  private at = 0;
  private isApplying = false;
  private abort = new AbortController();
  private lastLine = 0;
  /** Up to when what happened was told (milliseconds). */
  private toldUntil = 0;

  override now(): number {
    return Date.now();
  }

  async run(): Promise<never> {
    setInterval(() => {
      if (this.status === "live" && Date.now() - this.lastLine > kSilenceMs) this.abort.abort();
    }, 1000);
    for (let pause = 500; ; pause = Math.min(pause * 2, 10_000)) {
      try {
        await this.follow(() => (pause = 500));
        this.lose("berth has ended the connection");
      } catch (error) {
        this.lose(error instanceof RequestError ? error.message : "berth does not answer", error instanceof RequestError && error.status === 401);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  private lose(reason: string, isEnded = false): void {
    if (this.status === "live" && this.isSynced) this.toldUntil = this.lastLine;
    this.status = isEnded ? "ended" : "lost";
    this.reason = reason;
    this.changed();
  }

  private async follow(alive: () => void): Promise<void> {
    this.abort = new AbortController();
    this.lastLine = Date.now();
    let isFirst = true;
    for await (const rows of lines("/berth/live", { signal: this.abort.signal })) {
      if (isFirst) this.begin();
      isFirst = false;
      alive();
      this.lastLine = Date.now();
      for (const row of rows) this.queue.push(row as LiveRow);
      this.applySome();
    }
  }

  /** What was shown stays until all is told anew. */
  private begin(): void {
    this.queue = [];
    this.at = 0;
    if (this.cluster.version > 0) this.filling = new Cluster(this.cluster.log);
    this.status = "live";
    this.isSynced = false;
    this.changed();
  }

  /** A frame's worth; the rest in the next ones. */
  private applySome(): void {
    if (this.isApplying) return;
    const end = performance.now() + kFrameMs;
    const now = Date.now();
    while (this.at < this.queue.length) {
      const row = this.queue[this.at++] as LiveRow;
      if (!("gone" in row) && row.kind === "state") this.take(row);
      else this.filling.apply(row, now);
      if (this.at % 256 === 0 && performance.now() > end) break;
    }
    if (this.at >= this.queue.length) {
      this.queue = [];
      this.at = 0;
    } else {
      this.isApplying = true;
      nextFrame(() => {
        this.isApplying = false;
        this.applySome();
      });
    }
    this.changed();
  }

  private take(state: { synced: boolean; problems: Problem[] }): void {
    this.problems = state.problems;
    if (!state.synced || this.isSynced) return;
    this.isSynced = true;
    this.cluster = this.filling;
    const now = Date.now();
    for (const one of pastOf(this.cluster, Math.max(this.toldUntil, now - kPastMs), now)) this.cluster.log.add(one);
    this.cluster.tellsNews = true;
  }
}

export class Replay extends Source {
  private readonly timeline = new Timeline();
  readonly cluster = this.timeline.cluster;
  status: "loading" | "ready" | "failed" = "loading";
  reason = "";
  name = "";
  isPlaying = false;
  /** Recorded seconds in a second. */
  speed = 60;
  private lastFrame = 0;

  get problems(): string[] {
    return this.timeline.problems;
  }
  get source(): string {
    return this.timeline.source;
  }
  get start(): number {
    return this.timeline.start;
  }
  get length(): number {
    return this.timeline.length;
  }
  get time(): number {
    return this.timeline.time;
  }
  get rowCount(): number {
    return this.timeline.rows.length;
  }
  override now(): number {
    return this.timeline.start + this.timeline.time;
  }

  /** `file`: chosen in the browser; without one the file that berth was started with. */
  async load(file?: File): Promise<void> {
    this.name = file?.name ?? "";
    try {
      for await (const rows of lines("/berth/recording", { body: file })) {
        for (const row of rows) this.takeRow(row as { kind?: string } & Record<string, unknown>);
        this.changed();
      }
      this.status = "ready";
      this.seek(0);
    } catch (error) {
      this.status = "failed";
      this.reason = error instanceof Error ? error.message : String(error);
    }
    this.changed();
  }

  private takeRow(row: { kind?: string } & Record<string, unknown>): void {
    if (row.kind === "recording") {
      this.timeline.start = row["start"] as number;
      this.timeline.source = row["source"] as string;
    } else if (row.kind === "end") {
      this.timeline.problems = row["problems"] as string[];
      this.timeline.end = row["length"] as number;
    } else {
      this.timeline.rows.push(row as unknown as TimedRow);
    }
  }

  seek(time: number): void {
    this.timeline.seek(Math.max(0, Math.min(time, this.length)));
    this.changed();
  }

  play(on: boolean): void {
    if (on === this.isPlaying) return;
    this.isPlaying = on;
    this.lastFrame = performance.now();
    if (on && this.time >= this.length) this.seek(0);
    if (on) this.step();
    this.changed();
  }

  private step(): void {
    requestAnimationFrame(() => {
      if (!this.isPlaying) return;
      const now = performance.now();
      this.seek(this.time + (now - this.lastFrame) * this.speed);
      this.lastFrame = now;
      if (this.time >= this.length) this.isPlaying = false;
      else this.step();
    });
  }
}
