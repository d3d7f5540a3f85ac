import type { ExtraField, Int64 } from '../../core/index.ts'
import type { Column, DecodeSettings, Group, RecordBatch, Vector } from '../../rows/index.ts'
import { FactColumns } from '../facts/fact-columns.ts'
import { isConstant, type Masks } from '../mask/mask.ts'
import type { Credential } from '../schema.ts'
import { NumberList } from './lists.ts'
import { SourceTable } from './source-table.ts'
import { DictionaryColumn, PlainColumn, RedactedColumn, type TextColumn } from './text-columns.ts'
import { ListList, textVector } from './text-list.ts'
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
  readonly extras: ExtraColumns | null
  readonly facts: FactColumns | null
  readonly #names: readonly string[]
  readonly #texts = new Map<string, TextColumn>()
  readonly #lists = new Map<string, ListList>()

  constructor(settings: DecodeSettings, masks: Masks) {
    this.#names = settings.columns.map((column) => column.name)
    this.domain = this.#wanted(this.#texts, 'domain', () => new DictionaryColumn())
    this.identityName = this.#wanted(this.#texts, 'identity_name', () => new PlainColumn(masks.identity))
    this.hash = this.#wanted(this.#texts, 'hash', () =>
      isConstant(masks.secret) ? new RedactedColumn() : new PlainColumn(masks.secret),
    )
    this.hashType = this.#wanted(this.#texts, 'hash_type', () => new DictionaryColumn())
    this.knownPasswordId = this.#wanted(this.#texts, 'known_password_id', () => new PlainColumn())
    this.authDomains = this.#wanted(this.#lists, 'auth_domains', () => new ListList())
    this.urls = this.#wanted(this.#lists, 'urls', () => new ListList())
    this.extras = settings.extras.length === 0 ? null : new ExtraColumns(settings.extras)
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
    this.extras?.add(extras)
    this.facts?.add(credential.hash ?? null, credential.hash_type ?? null)
  }

  /** The rows so far, as views: to be encoded before the next change. */
  recordBatch(queryType: string, queryValue: string): RecordBatch {
    // Entry 0 of group 0 holds what is the same for every row.
    const groups: Group[] = [{ size: 1, indices: null }]
    const sources = this.sources.addGroup(groups)
    const columns = this.#names.map((name): Column => {
      switch (name) {
        case 'id':
          return perRow(name, this.id.vector())
        case 'imported_at':
          return perRow(name, this.importedAt.vector())
        case 'query_type':
          return { name, group: 0, values: textVector([queryType]) }
        case 'query_value':
          return { name, group: 0, values: textVector([queryValue]) }
      }
      const list = this.#lists.get(name)
      if (list !== undefined) return perRow(name, list.vector())
      return (
        this.#texts.get(name)?.column(name, groups) ??
        this.extras?.column(name, groups) ??
        this.facts?.column(name, groups) ??
        this.sources.column(name, sources)
      )
    })
    return { rows: this.rows, groups, columns }
  }

  reset(): void {
    this.id.reset()
    this.importedAt.reset()
    this.sources.reset()
    for (const column of [...this.#texts.values(), ...this.#lists.values()]) column.reset()
    this.extras?.reset()
    this.facts?.reset()
  }

  #wanted<C>(kept: Map<string, C>, name: string, make: () => C): C | null {
    if (!this.#names.includes(name)) return null
    const column = make()
    kept.set(name, column)
    return column
  }
}

function addText(column: TextColumn | null, value: string | Int64 | null | undefined): void {
  if (column === null) return
  if (value === null || value === undefined) column.addNull()
  else column.addText(String(value))
}

function perRow(name: string, values: Vector): Column {
  return { name, group: null, values }
}

/** The columns of `transform.extra_columns` under construction, in the order of their fields. */
class ExtraColumns {
  readonly #columns: readonly { readonly name: string; readonly values: ValueColumn }[]

  constructor(fields: readonly ExtraField[]) {
    this.#columns = fields.map(({ name, path, type }) => {
      // What identifies an item does not repeat; of other strings much does.
      const repeats = type === 'string' ? path.length > 1 : type === 'json'
      return { name, values: valueColumn(type, repeats) }
    })
  }

  add(values: readonly ColumnValue[]): void {
    for (let i = 0; i < this.#columns.length; i++) this.#columns[i]!.values.add(values[i] ?? null)
  }

  column(name: string, groups: Group[]): Column | undefined {
    return this.#columns.find((column) => column.name === name)?.values.column(name, groups)
  }

  reset(): void {
    for (const { values } of this.#columns) values.reset()
  }
}
