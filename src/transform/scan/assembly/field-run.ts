import {
  ENDS,
  ESCAPED_TEXT,
  FIELD_SLOTS,
  INTEGER,
  KEPT,
  KINDS,
  RUN_BYTES,
  RUN_ENDS,
  RUN_OFFSETS,
  RUN_STARTS,
  RUN_STATES,
  RUN_TEXTS,
  STARTS,
  TEXT,
} from './layout'
import { areSame } from './sources'

// The texts of one field in the records that become rows, row by row: what a column takes at once.

// STATE of item-fields.ts.
const IS_NULL: u8 = 0
const IS_TEXT: u8 = 1
const IS_ESCAPED: u8 = 2
const IS_SAME: u8 = 3

/** @returns how many are null, or -1 when not all texts are end to end: one has escapes, or there is no room */
export function gatherTexts(field: usize, rows: usize): i32 {
  let isWhole = true
  let nulls = 0
  let length: usize = 0
  let last: usize = 0
  let lastLength: usize = 0
  for (let row: usize = 0; row < rows; row++) {
    let state = stateOf(field, row)
    if (state === IS_NULL) nulls++
    else {
      const start = startOf(row)
      const bytes = endOf(row) - start
      isWhole = isWhole && state === IS_TEXT && length + bytes <= RUN_BYTES
      if (isWhole) {
        // Up to fifteen bytes too many are written, and overwritten by the next.
        for (let i: usize = 0; i < bytes; i += 16) v128.store(RUN_TEXTS + length + i, v128.load(start + i))
        length += bytes
      }
      if (state === IS_TEXT) {
        if (last !== 0 && bytes === lastLength && areSame(last, start, bytes)) state = IS_SAME
        last = start
        lastLength = bytes
      } else last = 0
    }
    store<u8>(RUN_STATES + row, state)
    store<u32>(RUN_OFFSETS + 4 * row, length)
  }
  return isWhole ? nulls : -1
}

function stateOf(field: usize, row: usize): u8 {
  const slot = FIELD_SLOTS * load<u16>(KEPT + 2 * row) + field
  const kind = load<u8>(KINDS + slot)
  if ((kind & (TEXT | INTEGER | ESCAPED_TEXT)) === 0) return IS_NULL
  store<u32>(RUN_STARTS + 4 * row, load<u32>(STARTS + 4 * slot))
  store<u32>(RUN_ENDS + 4 * row, load<u32>(ENDS + 4 * slot))
  return kind === ESCAPED_TEXT ? IS_ESCAPED : IS_TEXT
}

function startOf(row: usize): usize {
  return load<u32>(RUN_STARTS + 4 * row)
}

function endOf(row: usize): usize {
  return load<u32>(RUN_ENDS + 4 * row)
}
