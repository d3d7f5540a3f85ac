/** What a row has of a field. */
export const STATE = { null: 0, text: 1, escapedText: 2, sameText: 3 } as const

/** The texts of one field at a time, in a run of rows. What it holds is of the field asked for last. */
export type FieldRun = {
  readonly rows: number
  /** By row: its {@link STATE}, and where in `bytes` the JSON of its text stands, quotes excluded. */
  readonly states: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly bytes: Uint8Array
  /** The texts themselves, end to end, and by row where they end. */
  readonly texts: Uint8Array
  readonly offsets: Uint32Array

  /** Finds the texts of a field. */
  find(field: number): void
  /** Also says of a text that it is the same as the last one before it. */
  compare(field: number): void
  /** Also puts them end to end. @returns how many rows have none, or -1 when it was not to be done for all of them */
  gather(field: number): number
}
