import { isUtf8 } from 'node:buffer'
import type { DecodedPage } from '../core/index.ts'
import { isExportError, mayHoldManyValues, parseExactJson } from '../core/index.ts'
import { hasByteOrderMark, MAX_ITEMS } from './answer.ts'
import type { CredentialColumns, ListList, SourceTable, TextColumn } from './columns/index.ts'
import type { CredentialPage } from './credential-page.ts'
import type { ExtraReader } from './extra/index.ts'
import {
  ANY_FIELDS,
  AUTH_DOMAINS,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOMAIN,
  HASH,
  HASH_TYPE,
  IDENTITY_NAME,
  type ItemWalker,
  itemWalker,
  JsonScanner,
  KIND,
  KNOWN_PASSWORD_ID,
  type KnownSource,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  RECORD_SLOTS,
  SOURCE,
  SOURCE_ID,
  STATUS,
  URLS,
} from './scan/index.ts'
import { fieldName, type UnknownFields } from './schema/index.ts'

/** Items that are not understood cost more here than on the plain path: beyond one in eight, it takes over. */
const MAX_STRANGE_SHARE = 1 / 8
const MIN_STRANGE = 32

/**
 * The fast path: copies the values of a page of credentials from the answer's bytes into columns, without
 * making objects or strings of them. It never decides that something is wrong. An item it does not
 * understand goes through JSON.parse and the schema; a page it does not understand is given up, and the
 * plain path says what is the matter with it.
 */
export class FastPath {
  private readonly json = new JsonScanner()
  private readonly walker: ItemWalker | null
  private body: Buffer = Buffer.alloc(0)
  private pages = 0
  private items = 0
  private strange = 0

  /** @param extras reads additional columns; null: there are none */
  constructor(private readonly extras: ExtraReader | null) {
    this.walker = itemWalker(
      extras === null
        ? null
        : { fields: extras.sourceFields, read: (bytes, start, end) => extras.source(bytes, start, end) },
    )
  }

  /** Fills the page and finishes it; null when the page is not understood. What it was given is void then. */
  decode(body: Buffer, page: CredentialPage): DecodedPage | null {
    if (this.walker === null) return null
    this.body = body
    this.json.begin(body)
    this.walker.begin(body)
    this.pages++
    this.items = 0
    this.strange = 0
    try {
      return this.answer(this.walker, page)
    } catch (error) {
      // The message of a SyntaxError quotes the text, so none may leave here, even if the walker were wrong.
      if (isExportError(error, 'data') || error instanceof SyntaxError) return null
      throw error
    }
  }

  /** `{"items": [...], "next": ...}`, in either order and with other fields between. */
  private answer(walker: ItemWalker, page: CredentialPage): DecodedPage | null {
    const { body, json } = this
    let at = json.space(hasByteOrderMark(body) ? 3 : 0)
    if (body[at] !== OPEN_BRACE) return null
    let hasItems = false
    let next: string | null = null
    let checked = 0
    do {
      const key = json.space(at + 1)
      if (body[key] !== QUOTE) return null
      const keyEnd = json.string(key + 1)
      if (keyEnd < 0 || json.hasEscapes) return null
      at = json.space(keyEnd)
      if (body[at] !== COLON) return null
      const value = json.space(at + 1)
      const name = body.toString('latin1', key + 1, keyEnd - 1)
      at = name === 'items' ? this.itemList(walker, value, page) : json.value(value)
      if (at < 0) return null
      if (name === 'items') {
        if (hasItems || !isUtf8(body.subarray(0, value))) return null
        // The walker has seen to what lies between.
        checked = at
        hasItems = true
      } else if (name === 'next') {
        if (mayHoldManyValues(at - value)) return null
        const parsed: unknown = JSON.parse(body.toString('utf8', value, at))
        if (parsed !== null && typeof parsed !== 'string') return null
        next = parsed
      }
      at = json.space(at)
    } while (body[at] === COMMA)
    if (body[at] !== CLOSE_BRACE || json.space(at + 1) !== body.length || !hasItems) return null
    return isUtf8(body.subarray(checked)) ? page.finish(this.items, next) : null
  }

  private itemList(walker: ItemWalker, start: number, page: CredentialPage): number {
    const { body, json } = this
    if (body[start] !== OPEN_BRACKET) return -1
    let at = json.space(start + 1)
    if (body[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      if (at >= walker.end && !walker.open(at)) return -1
      const records = walker.walk(at)
      if (this.items + records > MAX_ITEMS) return -1
      for (let record = 0; record < records; record++) {
        if (!this.addRow(walker, record, page)) {
          const item = walker.itemStart(record)
          const end = json.value(item)
          if (end < 0 || !this.addStrange(item, end, page)) return -1
        }
        this.items++
      }
      at = walker.position
      const { status } = walker
      if (status === STATUS.last) return at
      if (status === STATUS.full || (status === STATUS.newSource && walker.learn())) continue
      if (body[at] !== OPEN_BRACE) return -1
      const end = json.value(at)
      if (end < 0) return -1
      const behind = json.space(end)
      if (behind >= walker.end && walker.end < body.length) {
        // It goes on beyond the window, which has to be larger if it holds nothing else.
        if (!walker.open(at, walker.isFirst(at) ? 2 * (behind + 1 - at) : 0)) return -1
        continue
      }
      if (!this.addStrange(at, end, page) || ++this.items > MAX_ITEMS) return -1
      if (body[behind] === CLOSE_BRACKET) return behind + 1
      if (body[behind] !== COMMA) return -1
      at = json.space(behind + 1)
    }
  }

  /** Adds an item that is not understood; false when the page is not. */
  private addStrange(start: number, end: number, page: CredentialPage): boolean {
    this.strange++
    if (this.strange > MIN_STRANGE + this.items * MAX_STRANGE_SHARE) return false
    if (mayHoldManyValues(end - start)) return false
    const { body } = this
    page.add(JSON.parse(body.toString('utf8', start, end)), this.items, {
      exact: () => parseExactJson(body, start, end),
      body,
      start: () => start,
    })
    return true
  }

  /** Adds the item of a record; false when it is not understood after all, or nobody asked for it. */
  private addRow(walker: ItemWalker, record: number, { columns, range, unknown }: CredentialPage): boolean {
    const slots = record * RECORD_SLOTS
    const source = walker.kinds[slots + SOURCE] === KIND.source ? walker.source(record) : null
    // Before anything is noted of the item: what breaks the type of a column is not understood here.
    if (this.extras !== null && !this.readExtras(this.extras, walker, record, source)) return false
    const id = walker.id(record)
    const importedAt = walker.times[record]!
    const verdict = range.admit(id, importedAt)
    if (verdict !== 'keep') return verdict !== 'outside'
    columns.id.add(id)
    columns.importedAt.add(importedAt)
    addText(columns.domain, walker, slots + DOMAIN)
    addText(columns.identityName, walker, slots + IDENTITY_NAME)
    addText(columns.hash, walker, slots + HASH)
    addText(columns.hashType, walker, slots + HASH_TYPE)
    addText(columns.knownPasswordId, walker, slots + KNOWN_PASSWORD_ID)
    columns.sources.addRow(this.sourceEntry(walker, record, source, columns.sources))
    addTexts(columns.authDomains, walker, slots + AUTH_DOMAINS)
    addTexts(columns.urls, walker, slots + URLS)
    const unknownFields = walker.unknownCount(record)
    for (let i = 0; i < unknownFields; i++) {
      const [start, end] = [walker.unknownField(record, i, 0), walker.unknownField(record, i, 1)]
      const name = walker.bytes.toString('utf8', start, end)
      if (this.extras === null || !this.extras.itemFields.has(name)) unknown.count(fieldName('', name))
    }
    if (source !== null) for (const name of source.unknown) unknown.count(name)
    if (this.extras !== null) addExtras(this.extras, walker, slots, columns, unknown, source)
    return true
  }

  /** @returns whether every value is of its type */
  private readExtras(
    extras: ExtraReader,
    walker: ItemWalker,
    record: number,
    source: KnownSource | null,
  ): boolean {
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

  private sourceEntry(
    walker: ItemWalker,
    record: number,
    known: KnownSource | null,
    table: SourceTable,
  ): number {
    if (known !== null && walker.hasIdOfSource(record)) {
      if (known.page !== this.pages) {
        known.page = this.pages
        known.entry = table.entry(known.source.id, known.source)
      }
      return known.entry
    }
    // The quotes stand right before and behind.
    const { bytes, starts, ends } = walker
    const slot = record * RECORD_SLOTS + SOURCE_ID
    const sourceId = bytes.toString('utf8', starts[slot]! - 1, ends[slot]! + 1)
    return table.entry(JSON.parse(sourceId) as string, known?.source ?? null)
  }
}

/** An integer's digits are its text. */
function addText(column: TextColumn | null, { bytes, kinds, starts, ends }: ItemWalker, slot: number): void {
  if (column === null) return
  const kind = kinds[slot]!
  if (kind === KIND.missing || kind === KIND.null) column.addNull()
  else column.addJson(bytes, starts[slot]!, ends[slot]!, kind === KIND.escapedText)
}

function addTexts(
  column: ListList | null,
  { bytes, kinds, starts, ends, texts }: ItemWalker,
  slot: number,
): void {
  if (column === null) return
  const isThere = kinds[slot] === KIND.texts
  for (let i = starts[slot]!; isThere && i < ends[slot]!; i++) {
    column.items.addJson(bytes, texts[3 * i]!, texts[3 * i + 1]!, texts[3 * i + 2] === 1)
  }
  column.close(isThere)
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
  for (const name of extras.unknown(source?.extras?.unknown ?? [])) unknown.count(name)
}

/** A text as a string. */
function textAt({ bytes, kinds, starts, ends }: ItemWalker, slot: number): string | null {
  const kind = kinds[slot]
  if (kind !== KIND.text && kind !== KIND.escapedText) return null
  const [start, end] = [starts[slot]!, ends[slot]!]
  if (kind === KIND.text) return bytes.toString('utf8', start, end)
  return JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string
}
