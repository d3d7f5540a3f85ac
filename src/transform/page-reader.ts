import { isUtf8 } from 'node:buffer'
import { hasTooManyValues, isExportError } from '../core/index.ts'
import type { DecodedPage, DecodeSettings, PageContext } from '../rows/index.ts'
import type { SourceTable } from './columns/source-table.ts'
import type { ListList } from './columns/text-list.ts'
import { CredentialPage } from './credential-page.ts'
import type { Verdict } from './page-range.ts'
import { hasByteOrderMark, MAX_ITEMS, pageLocation, parseResponse, wrongShape } from './response.ts'
import { type Hidden, type RowTexts, repeats } from './row-texts.ts'
import { parseExactJson } from './scan/exact-json.ts'
import {
  AUTH_DOMAINS,
  DOMAIN,
  HASH,
  HASH_TYPE,
  IDENTITY_NAME,
  KIND,
  KNOWN_PASSWORD_ID,
  SOURCE_ID,
  URLS,
} from './scan/item-fields.ts'
import { type ItemWalker, itemWalker, RECORD_SLOTS, STATUS, textIn } from './scan/item-walker.ts'
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
import { fieldName } from './schema.ts'

const NO_BODY = Buffer.alloc(0)

/**
 * Values go from the response's bytes into columns, without objects. What the walker does not understand is read by
 * JSON.parse and the schema. Without a walker, or with additional columns, all items are.
 */
export class PageReader {
  readonly #page: CredentialPage
  #walker: ItemWalker | null = null
  #body: Buffer = NO_BODY
  #pages = 0
  #items = 0

  /** @throws ExportError 'config' when a policy needs a mask key and there is none */
  constructor(settings: DecodeSettings) {
    this.#page = new CredentialPage(settings)
  }

  /** @throws ExportError as {@link parseResponse}; `data` also when an item was not requested */
  read(body: Buffer, context: PageContext): DecodedPage {
    if (this.#page.extras === null) this.#walker ??= itemWalker()
    try {
      if (!isUtf8(body)) throw notUnderstood()
      return this.#readResponse(body, context)
    } catch (error) {
      if (!(error instanceof SyntaxError) && !isExportError(error)) throw error
      // The response counts before a single item. The message of a SyntaxError quotes the JSON, so it is not kept.
      parseResponse(body, context)
      throw isExportError(error) ? error : wrongShape('cannot be read', pageLocation(context))
    } finally {
      if (this.#walker?.isLarge === true) {
        this.#walker = null
        this.#body = NO_BODY
      }
    }
  }

  /** `{"items": [...], "next": ...}`, in either order and with other fields between. */
  #readResponse(response: Buffer, context: PageContext): DecodedPage {
    const start = this.#walker?.open(response) ?? null
    const walker = start === null ? null : this.#walker
    const body = walker?.bytes ?? response
    this.#body = body
    let at = skipSpace(body, (start ?? 0) + (hasByteOrderMark(response) ? 3 : 0))
    this.#require(at, OPEN_BRACE)
    let next: unknown = null
    const seen = new Set<string>()
    do {
      const key = skipSpace(body, at + 1)
      this.#require(key, QUOTE)
      const keyEnd = skipString(body, key)
      const name: unknown = JSON.parse(body.toString('utf8', key, keyEnd))
      at = skipSpace(body, keyEnd)
      this.#require(at, COLON)
      const value = skipSpace(body, at + 1)
      if (name === 'items' || name === 'next') {
        if (seen.has(name)) throw notUnderstood()
        seen.add(name)
      }
      if (name === 'items') {
        this.#require(value, OPEN_BRACKET)
        this.#page.begin(context)
        this.#pages++
        this.#items = 0
        at = this.#readItems(walker, value)
      } else {
        at = skipValue(body, value)
        const parsed = this.#parse(value, at)
        if (name === 'next') next = parsed
      }
      at = skipSpace(body, at)
    } while (body[at] === COMMA)
    this.#require(at, CLOSE_BRACE)
    if (skipSpace(body, at + 1) !== body.length || !seen.has('items')) throw notUnderstood()
    if (next !== null && typeof next !== 'string') throw notUnderstood()
    return this.#page.finish(this.#items, next)
  }

  /** @returns the position after the list at `start` */
  #readItems(walker: ItemWalker | null, start: number): number {
    const body = this.#body
    let at = skipSpace(body, start + 1)
    if (body[at] === CLOSE_BRACKET) return at + 1
    for (;;) {
      if (walker !== null) {
        this.#addRecords(walker, walker.walk(at))
        const { status, position } = walker
        if (status === STATUS.last) return position
        at = position
        if (status === STATUS.full || (status === STATUS.newSource && walker.learn())) continue
      }
      const end = skipValue(body, at)
      this.#addParsed(at, end)
      this.#items++
      at = skipSpace(body, end)
      if (body[at] === CLOSE_BRACKET) return at + 1
      this.#require(at, COMMA)
      at = skipSpace(body, at + 1)
    }
  }

  #addParsed(start: number, end: number): void {
    if (this.#items >= MAX_ITEMS) throw notUnderstood()
    this.#page.add(this.#parse(start, end), this.#items, this.#body, start)
  }

  /** @throws SyntaxError also when it has too many values */
  #parse(start: number, end: number): unknown {
    const json = this.#body.subarray(start, end)
    if (hasTooManyValues(json)) throw notUnderstood()
    return parseExactJson(this.#body, start, end)
  }

  #require(at: number, byte: number): void {
    if (this.#body[at] !== byte) throw notUnderstood()
  }

  #addRecords(walker: ItemWalker, records: number): void {
    const { run } = walker
    if (this.#items + records > MAX_ITEMS) throw notUnderstood()
    for (let record = 0; record < records; record++) {
      switch (this.#admit(walker, record)) {
        case 'keep':
          run.keep(record)
          break
        case 'outside': {
          const start = walker.itemStart(record)
          // Adds the rows before it first, to keep their order.
          this.#addRows(walker)
          this.#addParsed(start, skipValue(this.#body, start))
        }
      }
      this.#items++
    }
    this.#addRows(walker)
  }

  /** Whether the item of a record becomes a row; 'outside' also when it breaks the schema. */
  #admit(walker: ItemWalker, record: number): Verdict {
    const page = this.#page
    if (walker.isLine(record)) return 'outside'
    const verdict = page.range.admit(walker.id(record), walker.times[record]!)
    if (verdict !== 'keep') return verdict
    if (page.isForgotten?.(walker.text(record, IDENTITY_NAME)!) === true) {
      page.forget(walker.times[record]!)
      return 'drop'
    }
    if (hasUnknown(walker, record)) this.#countUnknown(walker, record)
    return verdict
  }

  #countUnknown(walker: ItemWalker, record: number): void {
    const { texts, unknown } = this.#page
    let hidden: Hidden | null = null
    const isHidden = (name: string): boolean => {
      hidden ??= texts.hidden([walker.text(record, HASH)], walker.text(record, IDENTITY_NAME)!)
      return repeats(name, hidden)
    }
    for (let field = walker.firstUnknown(record); field < walker.endUnknown(record); field++)
      unknown.count(fieldName('', walker.unknownName(field)), isHidden)
    unknown.countAll(walker.source(record)?.unknown ?? [], isHidden)
  }

  #addRows(walker: ItemWalker): void {
    const { columns, texts } = this.#page
    const { run } = walker
    const { rows, kept } = run
    if (rows === 0) return
    for (let row = 0; row < rows; row++) columns.id.add(walker.id(kept[row]!))
    for (let row = 0; row < rows; row++) columns.importedAt.add(walker.times[kept[row]!]!)
    columns.domain?.addRun(run, DOMAIN)
    columns.identityName?.addRun(run, IDENTITY_NAME)
    columns.hash?.addRun(run, HASH)
    columns.hashType?.addRun(run, HASH_TYPE)
    columns.facts?.addRun(run, HASH, HASH_TYPE)
    columns.knownPasswordId?.addRun(run, KNOWN_PASSWORD_ID)
    for (let row = 0; row < rows; row++)
      columns.sources.addRow(this.#sourceEntry(walker, kept[row]!, columns.sources))
    addLists(columns.authDomains, walker, AUTH_DOMAINS, null)
    addLists(columns.urls, walker, URLS, texts)
    run.rows = 0
  }

  #sourceEntry(walker: ItemWalker, record: number, table: SourceTable): number {
    const known = walker.source(record)
    if (known !== null && walker.hasIdOfSource(record)) {
      if (known.page !== this.#pages) {
        known.page = this.#pages
        known.entry = table.entry(known.source.id, known.source)
      }
      return known.entry
    }
    return table.entry(walker.text(record, SOURCE_ID)!, known?.source ?? null)
  }
}

function hasUnknown(walker: ItemWalker, record: number): boolean {
  return (
    walker.firstUnknown(record) < walker.endUnknown(record) ||
    (walker.source(record)?.unknown.length ?? 0) > 0
  )
}

/** @param shorten shortens them; null: they are no URLs */
function addLists(
  column: ListList | null,
  walker: ItemWalker,
  field: number,
  shorten: RowTexts | null,
): void {
  if (column === null) return
  const { bytes, kinds, starts, ends, texts, run } = walker
  for (let row = 0; row < run.rows; row++) {
    const slot = run.kept[row]! * RECORD_SLOTS + field
    const isThere = kinds[slot] === KIND.texts
    for (let i = isThere ? starts[slot]! : 0; isThere && i < ends[slot]!; i++) {
      const [start, end, hasEscapes] = [texts[3 * i]!, texts[3 * i + 1]!, texts[3 * i + 2] === 1]
      if (shorten === null) column.items.addJson(bytes, start, end, hasEscapes)
      else column.items.addText(shorten.url(textIn(bytes, start, end, hasEscapes)))
    }
    column.close(isThere)
  }
}

/** Ends the reading of a response; {@link parseResponse} then says why. */
function notUnderstood(): SyntaxError {
  return new SyntaxError()
}
