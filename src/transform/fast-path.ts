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
  IMPORTED_AT,
  ItemScanner,
  JsonScanner,
  KIND,
  KNOWN_PASSWORD_ID,
  type KnownSource,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SOURCE,
  SOURCE_ID,
  SourceCache,
  TimestampReader,
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
  private readonly sources: SourceCache
  private readonly item: ItemScanner
  private readonly timestamps = new TimestampReader()
  private body: Buffer = Buffer.alloc(0)
  private pages = 0
  private items = 0
  private strange = 0

  /** @param extras reads additional columns; null: there are none */
  constructor(private readonly extras: ExtraReader | null) {
    this.sources = new SourceCache(
      extras === null
        ? null
        : { fields: extras.sourceFields, read: (bytes, start, end) => extras.source(bytes, start, end) },
    )
    this.item = new ItemScanner(this.json, this.sources)
  }

  /** Fills the page and finishes it; null when the page is not understood. What it was given is void then. */
  decode(body: Buffer, page: CredentialPage): DecodedPage | null {
    if (!isUtf8(body)) return null
    this.body = body
    this.json.begin(body)
    this.sources.begin(body)
    this.item.begin(body)
    this.pages++
    this.items = 0
    this.strange = 0
    try {
      return this.answer(page)
    } catch (error) {
      // The message of a SyntaxError quotes the text, so none may leave here, even if the scanner were wrong.
      if (isExportError(error, 'data') || error instanceof SyntaxError) return null
      throw error
    }
  }

  /** `{"items": [...], "next": ...}`, in either order and with other fields between. */
  private answer(page: CredentialPage): DecodedPage | null {
    const { body, json } = this
    let at = json.space(hasByteOrderMark(body) ? 3 : 0)
    if (body[at] !== OPEN_BRACE) return null
    let hasItems = false
    let next: string | null = null
    do {
      const key = json.space(at + 1)
      if (body[key] !== QUOTE) return null
      const keyEnd = json.string(key + 1)
      if (keyEnd < 0 || json.hasEscapes) return null
      at = json.space(keyEnd)
      if (body[at] !== COLON) return null
      const value = json.space(at + 1)
      const name = body.toString('latin1', key + 1, keyEnd - 1)
      at = name === 'items' ? this.itemList(value, page) : json.value(value)
      if (at < 0) return null
      if (name === 'items') {
        if (hasItems) return null
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
    return page.finish(this.items, next)
  }

  private itemList(start: number, page: CredentialPage): number {
    const { body, json } = this
    if (body[start] !== OPEN_BRACKET) return -1
    let at = json.space(start + 1)
    if (body[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      if (body[at] !== OPEN_BRACE) return -1
      let end = this.item.scan(at + 1)
      if (end < 0 || !this.addRow(page)) end = this.strangeItem(at, page)
      if (end < 0) return -1
      if (++this.items > MAX_ITEMS) return -1
      at = json.space(end)
      if (body[at] === CLOSE_BRACKET) return at + 1
      if (body[at] !== COMMA) return -1
      at = json.space(at + 1)
    }
  }

  private strangeItem(at: number, page: CredentialPage): number {
    const end = this.json.value(at)
    if (end < 0) return -1
    this.strange++
    if (this.strange > MIN_STRANGE + this.items * MAX_STRANGE_SHARE) return -1
    if (mayHoldManyValues(end - at)) return -1
    const { body } = this
    page.add(JSON.parse(body.toString('utf8', at, end)), this.items, {
      exact: () => parseExactJson(body, at, end),
      body,
      start: () => at,
    })
    return end
  }

  /** Adds the item just scanned; false when it is not understood after all, or nobody asked for it. */
  private addRow({ columns, range, unknown }: CredentialPage): boolean {
    const { body, item } = this
    const importedAt = this.timestamps.read(body, item.starts[IMPORTED_AT]!, item.ends[IMPORTED_AT]!)
    if (importedAt === null) return false
    const source = item.kinds[SOURCE] === KIND.source ? item.source : null
    // Before anything is noted of the item: what breaks the type of a column is not understood here.
    if (this.extras !== null && !this.readExtras(this.extras, source)) return false
    const verdict = range.admit(item.id, importedAt)
    if (verdict !== 'keep') return verdict !== 'outside'
    columns.id.add(item.id)
    columns.importedAt.add(importedAt)
    this.addText(columns.domain, DOMAIN)
    this.addText(columns.identityName, IDENTITY_NAME)
    this.addText(columns.hash, HASH)
    this.addText(columns.hashType, HASH_TYPE)
    this.addText(columns.knownPasswordId, KNOWN_PASSWORD_ID)
    columns.sources.addRow(this.sourceEntry(source, columns.sources))
    this.addTexts(columns.authDomains, AUTH_DOMAINS)
    this.addTexts(columns.urls, URLS)
    const { unknownKeys } = item
    for (let i = 0; i < unknownKeys.length; i += 2) {
      const name = body.toString('utf8', unknownKeys.at(i), unknownKeys.at(i + 1))
      if (this.extras === null || !this.extras.itemFields.has(name)) unknown.count(fieldName('', name))
    }
    if (source !== null) for (const name of source.unknown) unknown.count(name)
    if (this.extras !== null) this.addExtras(this.extras, columns, unknown, source)
    return true
  }

  /** @returns whether every value is of its type */
  private readExtras(extras: ExtraReader, source: KnownSource | null): boolean {
    const { body, item } = this
    const { unknownKeys, unknownValues, kinds, starts, ends } = item
    extras.begin()
    for (const root of extras.roots) {
      const field = ANY_FIELDS.get(root.name)
      if (field !== undefined) {
        if (kinds[field] !== KIND.missing) extras.member(root, body, starts[field]!, ends[field]!)
        continue
      }
      const { written } = root
      for (let i = 0; i < unknownKeys.length; i += 2) {
        const [key, end] = [unknownKeys.at(i), unknownKeys.at(i + 1)]
        if (end - key !== written.length || body.compare(written, 0, end - key, key, end) !== 0) continue
        extras.member(root, body, unknownValues.at(i), unknownValues.at(i + 1))
      }
    }
    extras.end(body, source?.extras ?? null)
    return extras.issues.length === 0
  }

  private addExtras(
    extras: ExtraReader,
    columns: CredentialColumns,
    unknown: UnknownFields,
    source: KnownSource | null,
  ): void {
    extras.hide(
      extras.hidesSecret ? this.text(HASH) : null,
      extras.hidesIdentity ? this.text(IDENTITY_NAME) : null,
    )
    columns.extras?.add(extras.values)
    for (const name of extras.unknown(source?.extras?.unknown ?? [])) unknown.count(name)
  }

  /** A text as a string. */
  private text(field: number): string | null {
    const { kinds, starts, ends } = this.item
    const kind = kinds[field]
    if (kind !== KIND.text && kind !== KIND.escapedText) return null
    const [start, end] = [starts[field]!, ends[field]!]
    if (kind === KIND.text) return this.body.toString('utf8', start, end)
    return JSON.parse(this.body.toString('utf8', start - 1, end + 1)) as string
  }

  /** An integer's digits are its text. */
  private addText(column: TextColumn | null, field: number): void {
    if (column === null) return
    const kind = this.item.kinds[field]!
    if (kind === KIND.missing || kind === KIND.null) column.addNull()
    else
      column.addJson(this.body, this.item.starts[field]!, this.item.ends[field]!, kind === KIND.escapedText)
  }

  private addTexts(column: ListList | null, field: number): void {
    if (column === null) return
    const { kinds, starts, ends, texts } = this.item
    for (let i = starts[field]!; kinds[field] === KIND.texts && i < ends[field]!; i += 3) {
      column.items.addJson(this.body, texts.at(i), texts.at(i + 1), texts.at(i + 2) === 1)
    }
    column.close(kinds[field] === KIND.texts)
  }

  private sourceEntry(known: KnownSource | null, table: SourceTable): number {
    if (known !== null && this.isSourceId(known.id)) {
      if (known.page !== this.pages) {
        known.page = this.pages
        known.entry = table.entry(known.source.id, known.source)
      }
      return known.entry
    }
    // The quotes stand right before and behind.
    const { starts, ends } = this.item
    const sourceId = this.body.toString('utf8', starts[SOURCE_ID]! - 1, ends[SOURCE_ID]! + 1)
    return table.entry(JSON.parse(sourceId) as string, known?.source ?? null)
  }

  /** Whether the item's `source_id` is written as just these bytes. */
  private isSourceId(id: Uint8Array): boolean {
    const { kinds, starts, ends } = this.item
    const start = starts[SOURCE_ID]!
    if (kinds[SOURCE_ID] !== KIND.text || ends[SOURCE_ID]! - start !== id.length) return false
    for (let i = 0; i < id.length; i++) if (this.body[start + i] !== id[i]) return false
    return true
  }
}
