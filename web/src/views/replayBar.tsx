// The recording that is shown: its time slider, above every view.
import { clock, count, dateAndClock, duration } from "../model/format";
import { Replay } from "../net/source";
import { useApp, useChanges } from "./hooks";

const speeds = [1, 10, 60, 600, 3600];

export function ReplayBar(props: { replay: Replay }) {
  const { replay } = props;
  const { setReplay, about } = useApp();
  useChanges(replay, 50);
  const at = replay.start + replay.time;
  if (replay.status !== "ready")
    return (
      <div class="replay" role={replay.status === "failed" ? "alert" : "status"}>
        {replay.status === "failed" ? <span class="bad">{replay.reason}</span> : `Reading ${replay.name || "the recording"}: ${count(replay.rowCount)} changes so far…`}
        {(about.live || replay.status === "failed") && <button type="button" onClick={() => setReplay(undefined)}>Close</button>}
      </div>
    );
  return (
    <div class="replay">
      <button type="button" onClick={() => replay.play(!replay.isPlaying)} aria-label={replay.isPlaying ? "Pause" : "Play"}>
        {replay.isPlaying ? "❚❚" : "▶"}
      </button>
      <label class="slider">
        <span class="hidden">Time of the recording</span>
        <input
          type="range"
          min="0"
          max={replay.length}
          step={Math.max(1, Math.round(replay.length / 2000))}
          value={replay.time}
          aria-valuetext={`${dateAndClock(at)}, ${duration(replay.time / 1000)} of ${duration(replay.length / 1000)}`}
          onInput={(event) => {
            replay.play(false);
            replay.seek(Number(event.currentTarget.value));
          }}
        />
      </label>
      <time title={dateAndClock(at)}>{clock(at)}</time>
      <span class="quiet">
        {duration(replay.time / 1000)} of {duration(replay.length / 1000)}
      </span>
      <label>
        <span class="hidden">Speed</span>
        <select value={String(replay.speed)} onChange={(event) => (replay.speed = Number(event.currentTarget.value))}>
          {speeds.map((one) => (
            <option value={String(one)}>{one} ×</option>
          ))}
        </select>
      </label>
      {about.live && <button type="button" onClick={() => (replay.play(false), setReplay(undefined))}>Back to live</button>}
      {replay.problems.length > 0 && (
        <details class="warn">
          <summary>{count(replay.problems.length)} lines were left out or amended</summary>
          <ul>
            {replay.problems.map((one) => (
              <li>{one}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

export function RecordingView() {
  const { setReplay, replay } = useApp();
  const choose = (file: File | undefined) => {
    if (!file) return;
    const next = new Replay();
    setReplay(next);
    void next.load(file);
    location.hash = "#/map";
  };
  return (
    <section class="page" aria-labelledby="recording-title">
      <h1 id="recording-title">Recording</h1>
      <p>
        A recording of a cluster, made by <code>berth record</code> or <code>berth simulate --recording FILE</code>, is shown on the same map, with a time slider. The file is read by the berth that serves this page and goes nowhere else.
      </p>
      <p>
        <label class="button">
          Choose a file <input type="file" accept=".jsonl,.json,.ndjson" onChange={(event) => choose(event.currentTarget.files?.[0])} />
        </label>
      </p>
      {replay && <p>One is shown now; another file replaces it.</p>}
    </section>
  );
}
