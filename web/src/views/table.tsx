// A table of any length: only the rows that are seen are there. A grid to the keyboard and to screen readers.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../model/format";
import { useSize } from "./hooks";

export interface Column<T> {
  title: string;
  /** Share of the width. */
  grow: number;
  /** Instead of a share: what its content needs ("78px"). */
  width?: string;
  /** Columns of a higher number are left out first where there is no room. 0: never. */
  rank?: number;
  isNumber?: boolean;
  cell(row: T): ComponentChildren;
  sort?(row: T): number | string;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf(row: T): string;
  hrefOf?(row: T): string;
  empty: string;
  /** At most so many rows high; otherwise as high as its container. */
  most?: number;
  sortBy?: number;
  descending?: boolean;
}

const kRow = 34;

function columnsFor<T>(columns: Column<T>[], width: number): Column<T>[] {
  const room = Math.max(2, Math.floor(width / 110));
  const ranked = [...columns].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)).slice(0, room);
  return columns.filter((column) => ranked.includes(column));
}

export function Table<T>(props: Props<T>) {
  const id = useId();
  const body = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(body);
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(-1);
  const [order, setOrder] = useState({ column: props.sortBy === undefined ? undefined : props.columns[props.sortBy]?.title, down: props.descending ?? false });

  const rows = useMemo(() => {
    const by = props.columns.find((column) => column.title === order.column)?.sort;
    if (!by) return props.rows;
    const sign = order.down ? -1 : 1;
    return props.rows
      .map((row) => [by(row), row] as const)
      .sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0))
      .map(([, row]) => row);
  }, [props.rows, order]);

  const columns = width > 0 ? columnsFor(props.columns, width) : props.columns;
  const first = Math.max(0, Math.floor(top / kRow) - 5);
  const last = Math.min(rows.length, Math.ceil((top + (height || 600)) / kRow) + 5);
  const template = columns.map((column) => column.width ?? `minmax(0, ${column.grow}fr)`).join(" ");

  const move = (to: number) => {
    const at = Math.max(0, Math.min(rows.length - 1, to));
    setActive(at);
    const view = body.current;
    if (!view) return;
    if (at * kRow < view.scrollTop) view.scrollTop = at * kRow;
    else if ((at + 1) * kRow > view.scrollTop + view.clientHeight) view.scrollTop = (at + 1) * kRow - view.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / kRow) - 1);
    const steps: Record<string, number> = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 };
    const to = steps[event.key];
    const isOwn = event.target === event.currentTarget;
    if (to !== undefined && isOwn) {
      event.preventDefault();
      move(to);
    }
    const row = rows[active];
    if (event.key === "Enter" && isOwn && row !== undefined && props.hrefOf) location.hash = props.hrefOf(row);
  };
  useEffect(() => {
    if (active >= rows.length) setActive(rows.length - 1);
  }, [rows.length]);

  const shown = rows.slice(first, last);
  const style = props.most === undefined ? undefined : { height: `${Math.min(props.most, Math.max(1, rows.length)) * kRow + 2}px` };
  return (
    <div
      class={props.most === undefined ? "table fills" : "table"}
      role="grid"
      tabIndex={0}
      aria-label={`${props.label}: ${count(rows.length)}`}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div class="table-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((column) => {
          const isOrder = order.column === column.title;
          return (
            <div role="columnheader" key={column.title} class={column.isNumber ? "number" : ""} aria-sort={isOrder ? (order.down ? "descending" : "ascending") : undefined}>
              {column.sort ? (
                <button type="button" class="plain" onClick={() => setOrder({ column: column.title, down: isOrder ? !order.down : !!column.isNumber })}>
                  {column.title}
                  <span aria-hidden="true">{isOrder ? (order.down ? " ↓" : " ↑") : ""}</span>
                </button>
              ) : (
                column.title
              )}
            </div>
          );
        })}
      </div>
      <div
        class="table-body"
        ref={body}
        tabIndex={-1}
        role="rowgroup"
        style={style}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        {rows.length === 0 && <p class="empty">{props.empty}</p>}
        <div class="table-space" role="presentation" style={{ height: `${rows.length * kRow}px` }}>
          {shown.map((row, i) => (
            <div
              class={first + i === active ? "table-row active" : "table-row"}
              role="row"
              id={`${id}-${first + i}`}
              aria-rowindex={first + i + 2}
              aria-selected={first + i === active}
              key={props.keyOf(row)}
              style={{ top: `${(first + i) * kRow}px`, gridTemplateColumns: template }}
              onClick={() => setActive(first + i)}
            >
              {columns.map((column) => (
                <div role="gridcell" key={column.title} class={column.isNumber ? "number" : ""}>
                  {column.cell(row)}
                </div>
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
