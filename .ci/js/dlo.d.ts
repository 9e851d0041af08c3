// The types for checking the scripts of static/js. Browsers do not get this file.

/** The part of S before the first C. */
type Before<S extends string, C extends string> = S extends `${infer Head}${C}${string}` ? Head : S;

type Tag<T extends string> = T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement;

/**
 * The type of the element that a selector finds. The last part of the selector names the tag. For
 * example, '.filters input[name="q"]' finds an HTMLInputElement. Without a tag, the type is
 * HTMLElement.
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

/** A row that was taken off a list, and the row that came after it. */
interface Gone { row: HTMLTableRowElement; next: HTMLTableRowElement | null }

/** The interface of list.js: a list with a cursor and a selection. */
interface List {
  /** Moves the cursor by a number of rows. */
  move(by: number): void;
  /** Updates the page to show the current selection. */
  sync(): void;
  ticked(): HTMLTableRowElement[];
  /** The rows that a key acts on: the ticked rows, or else the row under the cursor. */
  aim(): HTMLTableRowElement[];
  /** The fields that the form sends if a button is pressed for the given rows. */
  body(by: HTMLElement, about: HTMLTableRowElement[]): URLSearchParams;
  /** Puts the cursor on a row. */
  point(row: HTMLTableRowElement | undefined): void;
  /** The row under the cursor. */
  here(): HTMLTableRowElement | undefined;
  /** Dims rows that are about to leave the list, and moves the cursor on. */
  leave(rows: HTMLTableRowElement[]): void;
  /** Takes a row off the list. A cursor on that row moves to the row after it. */
  gone(row: HTMLTableRowElement): Gone;
  /** Puts rows back where they were. */
  back(gone: Gone[]): void;
  /** Ticks or unticks the row under the cursor. */
  pick(): void;
  /** Ticks all rows from the row that was last ticked or unticked to the cursor. */
  range(): void;
}

/** One of the choices that a field offers. */
interface Choice { text: string; label?: string; kind?: string; key?: string; link?: string; deed?: HTMLElement }

/** What dlo.js exports to the files that load after it, and what these files add. */
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
  /** Writes the times below an element in the zone that the reader chose. */
  times?: (root?: ParentNode) => void;
  /** The action of each key, by the name of the key. */
  keys: Record<string, () => void>;
  /** The list of this page, if the page has a list. */
  list?: List;
  /** The groups that this page has shown, without groups that a decision removed from it. */
  triage?: { seen: Set<string> };
};
