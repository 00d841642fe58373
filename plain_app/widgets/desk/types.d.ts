// What travels between the review desk and its server, and what the desk adds to it.

export type Verdict = "keep" | "reject" | "unsure";

export interface Cell {
  id: string; // of the instance
  label: string;
  name: string;
  confidence: number | null;
  proposed: Verdict;
  decided: Verdict | null; // what this annotator decided last
  offered?: string; // who offered the label
  asked?: boolean;
  sampled?: boolean; // drawn at random, for the estimates
  history?: number[];
  before?: string; // what this annotator decided before it was asked once more
  picture?: string;
  text?: string;
  // added by the desk
  decidedBefore: Verdict | null; // `decided` before this sitting
  verdict: Verdict | null; // what the answer would say
  isTouched?: boolean;
}

export interface Item {
  kind: "one" | "same"; // one instance with its candidates, or one label of many instances
  key: string;
  ids: string[];
  blind?: boolean;
  title: string;
  reason: string;
  promise: string;
  picture: string | null;
  texts: [string, string][];
  near: { title: string; picture?: string; text?: string }[];
  cells: Cell[];
  // added by the desk
  doneAt: number; // when it was answered or skipped here, else 0
  answer?: string[] | null; // uids
  isSkipped?: boolean;
}

export interface Decision {
  uid: string;
  instance_id: string;
  label: string;
  verdict: Verdict | "undo";
  confidence: number | null;
  shown: boolean;
  sampled: boolean;
  seconds: number;
  batch?: string;
}

export interface Entry {
  slot: string; // its name in localStorage
  token: string;
  decision: Decision;
  since: number;
  attempts?: number;
}

export interface Settings {
  token: string;
  scope: string;
  blind: boolean;
  query: { order: string; [name: string]: unknown };
}

export interface Progress {
  text: string;
  share: number;
}

export interface DecisionEffect {
  cell: Cell;
  verdict: Verdict;
  moved: { title: string; label: string; before: number; after: number }[];
  total: number;
  settles: number;
  error?: string;
}

export type Keys = Record<string, string[]>;
export type Trigger = (name: string, value: unknown) => void;
