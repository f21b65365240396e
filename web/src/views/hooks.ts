import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { About } from "../net/api";
import type { Live, Replay, Source } from "../net/source";

export interface App {
  about: About;
  live: Live;
  replay: Replay | undefined;
  /** What is shown: the live cluster or the recording. */
  source: Source;
  search: string;
  setSearch(text: string): void;
  setReplay(replay: Replay | undefined): void;
  isDark: boolean;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("outside of the app");
  return app;
}

/** Renders again when the source changed, at most every `ms`. Returns a number that then differs. */
export function useChanges(source: Source, ms: number): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const stop = source.listen(() => {
      if (timer !== undefined) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          last = performance.now();
          setVersion((one) => one + 1);
        },
        Math.max(0, last + ms - performance.now()),
      );
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [source, ms]);
  return version;
}

export function useEvery(ms: number, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    latest.current();
    const timer = setInterval(() => latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

export interface Asked<T> {
  value?: T;
  error?: string;
  isAsking: boolean;
}

/** Asks when `key` changes; a later answer to an earlier question is dropped. */
export function useAnswer<T>(key: string | undefined, ask: () => Promise<T>): Asked<T> & { again(): void } {
  const [state, setState] = useState<Asked<T>>({ isAsking: key !== undefined });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (key === undefined) return;
    let isCurrent = true;
    setState((before) => ({ ...before, isAsking: true, error: undefined }));
    ask().then(
      (value) => isCurrent && setState({ value, isAsking: false }),
      (error: unknown) => isCurrent && setState({ error: error instanceof Error ? error.message : String(error), isAsking: false }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, round]);
  return { ...state, again: () => setRound((one) => one + 1) };
}

export function useSize(ref: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const next = { width: element.clientWidth, height: element.clientHeight };
      setSize((before) => (before.width === next.width && before.height === next.height ? before : next));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}

export function remembered(key: string, fallback: string): string {
  try {
    return localStorage.getItem(`berth.${key}`) ?? fallback;
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(`berth.${key}`, value);
  } catch {
    // A browser that keeps nothing shows the defaults next time.
  }
}
