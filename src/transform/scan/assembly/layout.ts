/** Kinds of values, as in item-fields.ts. */
export const NULL: u8 = 1
export const TEXT: u8 = 2
export const ESCAPED_TEXT: u8 = 4
export const INTEGER: u8 = 8
export const LIST: u8 = 16
export const SOURCE_KIND: u8 = 32
export const ANY: u8 = 64

/** Numbers of fields, as there. */
export const ID: usize = 0
export const IDENTITY_NAME: usize = 2
export const IMPORTED_AT: usize = 5
export const SOURCE_ID: usize = 7
export const SOURCE: usize = 8
export const FIELD_COUNT: usize = 13
export const REQUIRED: u32 = (1 << 0) | (1 << 2) | (1 << 5) | (1 << 7)
/** Fields have numbers below this; the rest of a record's row says something else. */
export const FIELD_SLOTS: usize = 16
/** Of the kinds of a record: 1 if its `source_id` is written as the `id` of its source. */
export const IS_SOURCE_ID: usize = 13
/** Of the kinds of a record: 1 if its identity may be a line of a list. */
export const IS_LINE: usize = 15
/** Of starts and ends of a record: its first unknown field, and the one after its last. */
export const UNKNOWN: usize = 14

export const MAX_RECORDS: usize = 512
/** Unknown fields of all records, and of one: each is compared with those before it. */
export const MAX_UNKNOWN: usize = 4096
export const MAX_UNKNOWN_OF_ITEM: usize = 256
export const MAX_TEXTS: usize = 8192

/** By field number: 32 bytes of its name in quotes, 32 bytes that say which of these count. */
export const KEYS: usize = 1024
export const KEY_BYTES: usize = 64
/** By field number, a byte each. */
export const KEY_LENGTHS: usize = KEYS + FIELD_SLOTS * KEY_BYTES
export const ALLOWED: usize = KEY_LENGTHS + FIELD_SLOTS
/** The field that came after each field when last seen: items of a page mostly have one order. */
export const FOLLOWING: usize = ALLOWED + FIELD_SLOTS

/** By record and field number. */
export const KINDS: usize = 4096
export const STARTS: usize = KINDS + MAX_RECORDS * FIELD_SLOTS
export const ENDS: usize = STARTS + 4 * MAX_RECORDS * FIELD_SLOTS
/** By record. */
export const IDS: usize = ENDS + 4 * MAX_RECORDS * FIELD_SLOTS
export const TIMES: usize = IDS + 8 * MAX_RECORDS
export const SOURCES: usize = TIMES + 8 * MAX_RECORDS
export const ITEMS: usize = SOURCES + 4 * MAX_RECORDS
/** Start and end of the name of each unknown field. */
export const UNKNOWN_FIELDS: usize = ITEMS + 4 * MAX_RECORDS
/** Start, end and 1 for escapes of each text in a list. */
export const TEXTS: usize = UNKNOWN_FIELDS + 8 * MAX_UNKNOWN

/** The records that become rows, as JavaScript chose them; then of one field, row by row. */
export const KEPT: usize = TEXTS + 12 * MAX_TEXTS
export const RUN_STATES: usize = KEPT + 2 * MAX_RECORDS
export const RUN_STARTS: usize = RUN_STATES + MAX_RECORDS
export const RUN_ENDS: usize = RUN_STARTS + 4 * MAX_RECORDS
/** Texts end to end, and where each of them ends. */
export const RUN_OFFSETS: usize = RUN_ENDS + 4 * MAX_RECORDS
export const RUN_TEXTS: usize = RUN_OFFSETS + 4 * MAX_RECORDS
export const RUN_BYTES: usize = 1 << 16

/** The hash table of sources, then what is known of each: where it lies, where its `id` lies. */
export const SLOTS: usize = 6 << 16
export const SLOT_COUNT: usize = 1 << 16
export const MAX_SOURCES: usize = 1 << 15
export const KNOWN: usize = SLOTS + 8 * SLOT_COUNT
export const ARENA: usize = KNOWN + 16 * MAX_SOURCES
export const ARENA_BYTES: usize = 1 << 24

export const RESPONSE: usize = ARENA + ARENA_BYTES
/** Zeros behind it, so that whatever is cut off there ends in what no JSON has. */
export const MARGIN: usize = 256
