import { isUtf8 } from 'node:buffer'
import { type DecodedPage, hasTooManyValues, isExportError, mayHoldManyValues } from '../core/index.ts'
import type { CredentialColumns } from './columns/credential-columns.ts'
import type { SourceTable } from './columns/source-table.ts'
import type { ListList } from './columns/text-list.ts'
import type { CredentialPage } from './credential-page.ts'
import type { ExtraReader } from './extra/extra-reader.ts'
import type { Verdict } from './page-range.ts'
import { hasByteOrderMark, MAX_ITEMS } from './response.ts'
import { parseExactJson } from './scan/exact-json.ts'
import {
  ANY_FIELDS,
  AUTH_DOMAINS,
  DOMAIN,
  HASH,
  HASH_TYPE,
  IDENTITY_NAME,
  KIND,
  KNOWN_PASSWORD_ID,
  SOURCE,
  SOURCE_ID,
  URLS,
} from './scan/item-fields.ts'
import { type ItemWalker, itemWalker, type KnownSource, RECORD_SLOTS, STATUS } from './scan/item-walker.ts'
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
} from './scan/json-steps.ts'
import { fieldName, type UnknownFields } from './schema.ts'

/** Unsupported items cost more here than on the plain path. Beyond one in eight, the page is left to the plain path. */
const MAX_UNSUPPORTED_SHARE = 1 / 8
const MIN_UNSUPPORTED = 32

/**
 * The fast path copies the values of a page of credentials from the response's bytes into columns, without objects or
 * strings. It never rejects anything itself: an item that it does not support is decoded by JSON.parse and the schema,
 * and a page that it does not support is abandoned. The plain path then decodes it or reports the error.
 */
export class FastPath {
  readonly #walker: ItemWalker | null
  #body: Buffer = Buffer.alloc(0)
  #pages = 0
  #items = 0
  #unsupported = 0
  readonly #extras: ExtraReader | null

  /** @param extras reads additional columns; null: there are none */
  constructor(extras: ExtraReader | null) {
    this.#extras = extras
    this.#walker = itemWalker(extras)
  }

  /** Fills the page and finishes it; null when it is not supported. The contents of `page` are invalid then. */
  decode(body: Buffer, page: CredentialPage): DecodedPage | null {
    if (this.#walker === null) return null
    this.#body = body
    this.#walker.begin(body)
    this.#pages++
    this.#items = 0
    this.#unsupported = 0
    try {
      return this.#readResponse(this.#walker, page)
    } catch (error) {
      // The message of a SyntaxError quotes the JSON, so it must not be thrown on, even if the walker has a defect.
      if (isExportError(error, 'data') || error instanceof SyntaxError) return null
      throw error
    }
  }

  /** `{"items": [...], "next": ...}`, in either order and with other fields between. */
  #readResponse(walker: ItemWalker, page: CredentialPage): DecodedPage | null {
    const body = this.#body
    let at = skipSpace(body, hasByteOrderMark(body) ? 3 : 0)
    if (body[at] !== OPEN_BRACE) return null
    let hasItems = false
    let next: string | null = null
    let checked = 0
    do {
      const key = skipSpace(body, at + 1)
      if (body[key] !== QUOTE) return null
      const keyEnd = skipString(body, key)
      at = skipSpace(body, keyEnd)
      if (body[at] !== COLON) return null
      const value = skipSpace(body, at + 1)
      const name: unknown = JSON.parse(body.toString('utf8', key, keyEnd))
      if (name === 'items') {
        at = this.#itemList(walker, value, page)
        if (at < 0 || hasItems || !isUtf8(body.subarray(0, value))) return null
        // The walker has checked the bytes in between.
        checked = at
        hasItems = true
      } else {
        at = skipValue(body, value)
        if (hasTooManyValues(body.subarray(value, at))) return null
        const parsed: unknown = JSON.parse(body.toString('utf8', value, at))
        if (name === 'next') {
          if (parsed !== null && typeof parsed !== 'string') return null
          next = parsed
        }
      }
      at = skipSpace(body, at)
    } while (body[at] === COMMA)
    if (body[at] !== CLOSE_BRACE || skipSpace(body, at + 1) !== body.length || !hasItems) return null
    return isUtf8(body.subarray(checked)) ? page.finish(this.#items, next) : null
  }

  #itemList(walker: ItemWalker, start: number, page: CredentialPage): number {
    const body = this.#body
    if (body[start] !== OPEN_BRACKET) return -1
    let at = skipSpace(body, start + 1)
    if (body[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      if (at >= walker.end && !walker.open(at)) return -1
      const records = walker.walk(at)
      if (this.#items + records > MAX_ITEMS) return -1
      if (!this.#addRecords(walker, records, page)) return -1
      const { status, position } = walker
      if (status === STATUS.last) return position
      // The buffer may end in the white space between two items.
      at = skipSpace(body, position)
      if (status === STATUS.full || (status === STATUS.newSource && walker.learn())) continue
      if (at >= walker.end && at < body.length) continue
      if (body[at] !== OPEN_BRACE) return -1
      const end = walker.endOfValue(at)
      const behind = end < 0 ? end : skipSpace(body, end)
      if (walker.end < body.length && (end < 0 || behind >= walker.end)) {
        if (!this.#openAgain(walker, at)) return -1
        continue
      }
      if (end < 0) return -1
      if (!this.#addUnsupported(at, end, page) || ++this.#items > MAX_ITEMS) return -1
      if (body[behind] === CLOSE_BRACKET) return behind + 1
      if (body[behind] !== COMMA) return -1
      at = skipSpace(body, behind + 1)
    }
  }

  /** Opens a buffer that begins with an item and holds all of it; false when the page is not supported. */
  #openAgain(walker: ItemWalker, at: number): boolean {
    if (!walker.isFirst(at)) return walker.open(at)
    const body = this.#body
    const end = skipSpace(body, skipValue(body, at))
    // The buffer already holds the whole item, so it is not valid JSON.
    if (end < walker.end || end >= body.length) return false
    return walker.open(at, 2 * (end + 1 - at))
  }

  /** Adds an unsupported item by way of the plain path; false when the page is not supported. */
  #addUnsupported(start: number, end: number, page: CredentialPage): boolean {
    this.#unsupported++
    if (this.#unsupported > MIN_UNSUPPORTED + this.#items * MAX_UNSUPPORTED_SHARE) return false
    if (mayHoldManyValues(end - start)) return false
    const body = this.#body
    page.add(parseExactJson(body, start, end), this.#items, { body, start: () => start })
    return true
  }

  /** Adds the items of records; false when the page is not supported. */
  #addRecords(walker: ItemWalker, records: number, page: CredentialPage): boolean {
    const { run } = walker
    for (let record = 0; record < records; record++) {
      switch (this.#admit(walker, record, page)) {
        case 'keep':
          run.keep(record)
          break
        case 'outside': {
          const start = walker.itemStart(record)
          const end = walker.endOfValue(start)
          // Adds the rows before it first, to keep their order.
          this.#addRows(walker, page.columns)
          if (end < 0 || !this.#addUnsupported(start, end, page)) return false
        }
      }
      this.#items++
    }
    this.#addRows(walker, page.columns)
    return true
  }

  /** Whether the item of a record becomes a row; 'outside' also when it is not supported. */
  #admit(walker: ItemWalker, record: number, page: CredentialPage): Verdict {
    const extras = this.#extras
    const { columns, range, unknown } = page
    const slots = record * RECORD_SLOTS
    const source = walker.kinds[slots + SOURCE] === KIND.source ? walker.source(record) : null
    // First, before the item has any effect: a value that violates the type of its column is not supported here.
    if (extras !== null && !this.#readExtras(extras, walker, record, source)) return 'outside'
    const verdict = range.admit(walker.id(record), walker.times[record]!)
    if (verdict !== 'keep') return verdict
    if (page.suppression?.has(textAt(walker, slots + IDENTITY_NAME) ?? '') === true) {
      page.forget(walker.times[record]!)
      return 'drop'
    }
    const unknownFields = walker.unknownCount(record)
    for (let i = 0; i < unknownFields; i++) {
      const [start, end] = [walker.unknownField(record, i, 0), walker.unknownField(record, i, 1)]
      const name = walker.bytes.toString('utf8', start, end)
      if (extras === null || !extras.itemFields.has(name)) unknown.count(fieldName('', name))
    }
    if (source !== null && source.unknown.length > 0) unknown.countAll(source.unknown)
    if (extras !== null) addExtras(extras, walker, slots, columns, unknown, source)
    return verdict
  }

  /** Adds the rows that were kept, column by column. */
  #addRows(walker: ItemWalker, columns: CredentialColumns): void {
    const { run } = walker
    const { rows, kept } = run
    if (rows === 0) return
    for (let row = 0; row < rows; row++) columns.id.add(walker.id(kept[row]!))
    for (let row = 0; row < rows; row++) columns.importedAt.add(walker.times[kept[row]!]!)
    columns.domain?.addRun(run, DOMAIN)
    columns.identityName?.addRun(run, IDENTITY_NAME)
    columns.hash?.addRun(run, HASH)
    columns.hashType?.addRun(run, HASH_TYPE)
    columns.knownPasswordId?.addRun(run, KNOWN_PASSWORD_ID)
    for (let row = 0; row < rows; row++)
      columns.sources.addRow(this.#sourceEntry(walker, kept[row]!, columns.sources))
    addLists(columns.authDomains, walker, AUTH_DOMAINS)
    addLists(columns.urls, walker, URLS)
    run.rows = 0
  }

  /** @returns whether every value is of its type */
  #readExtras(extras: ExtraReader, walker: ItemWalker, record: number, source: KnownSource | null): boolean {
    const { bytes, kinds, starts, ends } = walker
    const slots = record * RECORD_SLOTS
    extras.begin()
    for (const root of extras.roots) {
      const field = ANY_FIELDS.get(root.name)
      if (field !== undefined) {
        if (kinds[slots + field] !== KIND.missing)
          extras.member(root, bytes, starts[slots + field]!, ends[slots + field]!)
        continue
      }
      const { written } = root
      for (let i = 0; i < walker.unknownCount(record); i++) {
        const [key, end] = [walker.unknownField(record, i, 0), walker.unknownField(record, i, 1)]
        if (end - key !== written.length || bytes.compare(written, 0, end - key, key, end) !== 0) continue
        extras.member(root, bytes, walker.unknownField(record, i, 2), walker.unknownField(record, i, 3))
      }
    }
    extras.end(bytes, source?.extras ?? null)
    return extras.issues.length === 0
  }

  #sourceEntry(walker: ItemWalker, record: number, table: SourceTable): number {
    const { bytes, kinds, starts, ends } = walker
    const slots = record * RECORD_SLOTS
    const known = kinds[slots + SOURCE] === KIND.source ? walker.source(record) : null
    if (known !== null && walker.hasIdOfSource(record)) {
      if (known.page !== this.#pages) {
        known.page = this.#pages
        known.entry = table.entry(known.source.id, known.source)
      }
      return known.entry
    }
    // Includes the quotes around it.
    const sourceId = bytes.toString('utf8', starts[slots + SOURCE_ID]! - 1, ends[slots + SOURCE_ID]! + 1)
    return table.entry(JSON.parse(sourceId) as string, known?.source ?? null)
  }
}

function addLists(column: ListList | null, walker: ItemWalker, field: number): void {
  if (column === null) return
  const { bytes, kinds, starts, ends, texts, run } = walker
  for (let row = 0; row < run.rows; row++) {
    const slot = run.kept[row]! * RECORD_SLOTS + field
    const isThere = kinds[slot] === KIND.texts
    for (let i = isThere ? starts[slot]! : 0; isThere && i < ends[slot]!; i++) {
      column.items.addJson(bytes, texts[3 * i]!, texts[3 * i + 1]!, texts[3 * i + 2] === 1)
    }
    column.close(isThere)
  }
}

function addExtras(
  extras: ExtraReader,
  walker: ItemWalker,
  slots: number,
  columns: CredentialColumns,
  unknown: UnknownFields,
  source: KnownSource | null,
): void {
  extras.hide(
    extras.hidesSecret ? textAt(walker, slots + HASH) : null,
    extras.hidesIdentity ? textAt(walker, slots + IDENTITY_NAME) : null,
  )
  columns.extras?.add(extras.values)
  unknown.countAll(extras.unknown(source?.extras?.unknown ?? []))
}

function textAt({ bytes, kinds, starts, ends }: ItemWalker, slot: number): string | null {
  const kind = kinds[slot]
  if (kind !== KIND.text && kind !== KIND.escapedText) return null
  const [start, end] = [starts[slot]!, ends[slot]!]
  if (kind === KIND.text) return bytes.toString('utf8', start, end)
  return JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string
}
