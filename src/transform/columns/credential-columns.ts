import type { Int64 } from '../../core/index.ts'
import type { Column, DecodeSettings, Group, RecordBatch } from '../../rows/index.ts'
import { FactColumns } from '../facts/fact-columns.ts'
import { isConstant, type Masks } from '../mask/mask.ts'
import type { Credential } from '../schema.ts'
import { type ColumnList, NumberList } from './lists.ts'
import { SourceTable } from './source-table.ts'
import { DictionaryColumn, RedactedColumn } from './text-columns.ts'
import { ListList, type TextColumn, TextList, textVector } from './text-list.ts'
import { type ColumnValue, type ValueColumn, valueColumn } from './value-columns.ts'

/** A row must be added to every column that is there; what the settings leave out is null. */
export class CredentialColumns {
  readonly id = new NumberList()
  readonly importedAt = new NumberList()
  readonly domain: TextColumn | null
  readonly identityName: TextColumn | null
  readonly hash: TextColumn | null
  readonly hashType: TextColumn | null
  readonly knownPasswordId: TextColumn | null
  readonly sources = new SourceTable()
  readonly authDomains: ListList | null
  readonly urls: ListList | null
  readonly facts: FactColumns | null
  readonly #extras: readonly ValueColumn[]
  readonly #names: readonly string[]
  /** Those above, and additional ones, by name. */
  readonly #lists = new Map<string, ColumnList>([
    ['id', this.id],
    ['imported_at', this.importedAt],
  ])

  constructor(settings: DecodeSettings, masks: Masks) {
    this.#names = settings.columns.map((column) => column.name)
    this.domain = this.#wanted('domain', () => new DictionaryColumn())
    this.identityName = this.#wanted('identity_name', () => new TextList(masks.identity))
    this.hash = this.#wanted('hash', () =>
      isConstant(masks.secret) ? new RedactedColumn() : new TextList(masks.secret),
    )
    this.hashType = this.#wanted('hash_type', () => new DictionaryColumn())
    this.knownPasswordId = this.#wanted('known_password_id', () => new TextList())
    this.authDomains = this.#wanted('auth_domains', () => new ListList())
    this.urls = this.#wanted('urls', () => new ListList())
    this.#extras = settings.extras.map(({ name, path, type }) => {
      // What identifies an item does not repeat; of other strings much does.
      const column = valueColumn(type, type === 'string' ? path.length > 1 : type === 'json')
      this.#lists.set(name, column)
      return column
    })
    this.facts = settings.secretFacts === null ? null : new FactColumns(settings.secretFacts)
  }

  get rows(): number {
    return this.id.length
  }

  add(credential: Credential, extras: readonly ColumnValue[]): void {
    // JSON knows a negative zero; an identifier does not.
    this.id.add(credential.id === 0 ? 0 : credential.id)
    this.importedAt.add(credential.imported_at)
    addText(this.domain, credential.domain)
    addText(this.identityName, credential.identity_name)
    addText(this.hash, credential.hash)
    addText(this.hashType, credential.hash_type)
    addText(this.knownPasswordId, credential.known_password_id)
    this.sources.addRow(this.sources.entry(credential.source_id, credential.source ?? null))
    this.authDomains?.add(credential.auth_domains ?? null)
    this.urls?.add(credential.urls ?? null)
    for (let i = 0; i < this.#extras.length; i++) this.#extras[i]!.add(extras[i] ?? null)
    this.facts?.add(credential.hash ?? null, credential.hash_type ?? null)
  }

  /** The rows so far, as views: to be encoded before the next change. */
  recordBatch(queryType: string, queryValue: string): RecordBatch {
    // Entry 0 of group 0 holds what is the same for every row.
    const groups: Group[] = [{ size: 1, indices: null }]
    const sources = this.sources.addGroup(groups)
    const columns = this.#names.map((name): Column => {
      switch (name) {
        case 'query_type':
          return { name, group: 0, values: textVector([queryType]) }
        case 'query_value':
          return { name, group: 0, values: textVector([queryValue]) }
      }
      return (
        this.#lists.get(name)?.column(name, groups) ??
        this.facts?.column(name, groups) ??
        this.sources.column(name, sources)
      )
    })
    return { rows: this.rows, groups, columns }
  }

  reset(): void {
    this.sources.reset()
    for (const list of this.#lists.values()) list.reset()
    this.facts?.reset()
  }

  #wanted<C extends ColumnList>(name: string, make: () => C): C | null {
    if (!this.#names.includes(name)) return null
    const list = make()
    this.#lists.set(name, list)
    return list
  }
}

function addText(column: TextColumn | null, value: string | Int64 | null | undefined): void {
  if (column === null) return
  if (value === null || value === undefined) column.addNull()
  else column.addText(String(value))
}
