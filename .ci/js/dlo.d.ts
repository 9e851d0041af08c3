// The types that the scripts of static/js are checked with. Browsers do not get this file.

/** The part of S before the first C. */
type Before<S extends string, C extends string> = S extends `${infer Head}${C}${string}` ? Head : S;

type Tag<T extends string> = T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement;

/**
 * What a selector finds. Its last part names the tag, for example HTMLInputElement for
 * '.filters input[name="q"]'; without a tag it is some HTMLElement.
 */
type Found<S extends string> =
  S extends `${infer First}, ${infer Rest}` ? Found<First> | Found<Rest>
  : S extends `${string} ${infer Last}` ? Found<Last>
  : Tag<Before<Before<Before<Before<S, '['>, '.'>, ':'>, '#'>>;

interface ParentNode {
  querySelector<S extends string>(selectors: S): Found<S> | null;
  querySelectorAll<S extends string>(selectors: S): NodeListOf<Found<S>>;
}

interface Element {
  closest<S extends string>(selectors: S): Found<S> | null;
}

/** A row that was taken off a list, and the row that stood behind it. */
interface Gone { row: HTMLTableRowElement; next: HTMLTableRowElement | null }

/** What list.js offers: a list with a cursor and a selection. */
interface List {
  /** Moves the cursor by so many rows. */
  move(by: number): void;
  /** Has the page show what is selected. */
  sync(): void;
  ticked(): HTMLTableRowElement[];
  /** What a key acts on: the ticked rows, else the row under the cursor. */
  aim(): HTMLTableRowElement[];
  /** What the form sends when that button is pressed for those rows. */
  body(by: HTMLElement, about: HTMLTableRowElement[]): URLSearchParams;
  /** Puts the cursor on a row. */
  point(row: HTMLTableRowElement | undefined): void;
  /** The row under the cursor. */
  here(): HTMLTableRowElement | undefined;
  /** Dims rows that are about to leave the list, and moves the cursor on. */
  leave(rows: HTMLTableRowElement[]): void;
  /** Takes a row off the list; the cursor goes to the row after it. */
  gone(row: HTMLTableRowElement): Gone;
  /** Puts rows back where they were. */
  back(gone: Gone[]): void;
  /** Ticks the row under the cursor, or takes its tick away. */
  pick(): void;
  /** Ticks the rows from the last one that was ticked to the cursor. */
  range(): void;
}

/** Something that a field may mean. */
interface Choice { text: string; label?: string; kind?: string; key?: string; link?: string; deed?: HTMLElement }

/** What dlo.js leaves for the files after it, and what they add. */
declare var dlo: {
  $<S extends string>(selector: S, root?: ParentNode): Found<S> | null;
  $$<S extends string>(selector: S, root?: ParentNode): Found<S>[];
  must<S extends string>(selector: S, root?: ParentNode): Found<S>;
  memory: {
    get(key: string): string | null; set(key: string, value: string): void;
    kept(key: string): string | null; keep(key: string, value: string): void;
  };
  /** The path below which dlo is reached, such as /dlo; '' at the root. */
  base: string;
  /** The time on the server. */
  now(): Date;
  reveal(root: ParentNode): void;
  parse(response: Response): Promise<Document>;
  fields(form: HTMLFormElement, by?: HTMLElement | null): URLSearchParams;
  action(form: HTMLFormElement, by?: HTMLElement | null): string;
  plainly(to: string, body: URLSearchParams): void;
  confirm(to: string, body: URLSearchParams): Promise<void>;
  toast(text: string, undo?: () => void): void;
  open(id: string): void;
  /** Writes the times below an element as the reader chose. */
  times?: (root?: ParentNode) => void;
  /** What a key does, by its name. */
  keys: Record<string, () => void>;
  /** The list of this page, where it has one. */
  list?: List;
  /** The groups that triage shows, or that a person has seen and not decided. */
  triage?: { seen: Set<string> };
};
