import type { Column, DecodePlan, Group, Int64, RecordBatch, Vector } from '../../core/index.ts'
import type { Masks } from '../mask/index.ts'
import type { Credential } from '../schema/index.ts'
import { ExtraColumns, type ExtraValue } from './extra-columns.ts'
import { SourceTable } from './source-table.ts'
import { dictionaryColumn, plainColumn, redactedColumn, type TextColumn } from './text-columns.ts'
import { textVector } from './text-list.ts'
import { ListList, NumberList } from './vector-lists.ts'

/**
 * The columns of one page of credentials under construction. Both decode paths add rows here: the plain
 * one whole credentials, the fast one values straight from the response's bytes. A row must be added to
 * every column that is there; what the plan leaves out is null.
 */
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

  private readonly names: readonly string[]

  constructor(plan: DecodePlan, masks: Masks) {
    this.names = plan.columns.map((column) => column.name)
    const wanted = <T>(name: string, make: () => T): T | null => (this.names.includes(name) ? make() : null)
    const hashColumn = () => (plan.secret === 'redact' ? redactedColumn() : plainColumn(masks.secret))
    this.domain = wanted('domain', dictionaryColumn)
    this.identityName = wanted('identity_name', () => plainColumn(masks.identity))
    this.hash = wanted('hash', hashColumn)
    this.hashType = wanted('hash_type', dictionaryColumn)
    this.knownPasswordId = wanted('known_password_id', () => plainColumn(null))
    this.authDomains = wanted('auth_domains', () => new ListList())
    this.urls = wanted('urls', () => new ListList())
    this.extras = plan.extras.length === 0 ? null : new ExtraColumns(plan.extras)
  }

  get rows(): number {
    return this.id.length
  }

  /** @param extras values of the additional columns */
  add(credential: Credential, extras: readonly ExtraValue[]): void {
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
  }

  /** The rows so far, as views: to be encoded before the next change. */
  recordBatch(queryType: string, queryValue: string): RecordBatch {
    // Entry 0 of group 0 holds what is the same for every row.
    const groups: Group[] = [{ size: 1, indices: null }]
    const sources = this.sources.addGroup(groups)
    const columns = this.names.map((name): Column => {
      switch (name) {
        case 'id':
          return perRow(name, this.id.vector())
        case 'imported_at':
          return perRow(name, this.importedAt.vector())
        case 'domain':
          return this.domain!.column(name, groups)
        case 'identity_name':
          return this.identityName!.column(name, groups)
        case 'hash':
          return this.hash!.column(name, groups)
        case 'hash_type':
          return this.hashType!.column(name, groups)
        case 'known_password_id':
          return this.knownPasswordId!.column(name, groups)
        case 'auth_domains':
          return perRow(name, this.authDomains!.vector())
        case 'urls':
          return perRow(name, this.urls!.vector())
        case 'query_type':
          return { name, group: 0, values: textVector([queryType]) }
        case 'query_value':
          return { name, group: 0, values: textVector([queryValue]) }
        default:
          return this.extras?.column(name, groups) ?? this.sources.column(name, sources)
      }
    })
    return { rows: this.rows, groups, columns }
  }

  reset(): void {
    this.id.reset()
    this.importedAt.reset()
    this.domain?.reset()
    this.identityName?.reset()
    this.hash?.reset()
    this.hashType?.reset()
    this.knownPasswordId?.reset()
    this.sources.reset()
    this.authDomains?.reset()
    this.urls?.reset()
    this.extras?.reset()
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
