import { nameQuery, partition, type Query, queryLabel, type Window } from '../../src/core/index.ts'
import {
  allColumns,
  columnsOf,
  type DecodedPage,
  type DecodeSettings,
  decodeRecordBatch,
  droppedColumns,
  FACT_COLUMNS,
  type PageContext,
} from '../../src/rows/index.ts'
import { type Cell, cellsOf } from '../load/cells.ts'

export type Row = Readonly<Record<string, Cell>>

export function decodeSettings(changes: Partial<DecodeSettings> = {}): DecodeSettings {
  const plan: DecodeSettings = {
    resource: 'credentials',
    columns: [],
    extras: [],
    secretFacts: null,
    order: 'asc',
    secret: 'redact',
    identity: 'keep',
    maskKey: Buffer.from('a key of thirty-two bytes or more'),
    suppress: null,
    ...changes,
  }
  if (changes.columns !== undefined) return plan
  const dropped = droppedColumns(plan.secret, plan.identity)
  const columns = allColumns(plan.resource, ['known_password_id', 'auth_domains', 'urls'])
  const own = columns.map(({ name }) => name).filter((name) => !dropped.includes(name))
  const extract = { resource: plan.resource, include: ['known_password_id', 'auth_domains', 'urls'] }
  const facts = plan.secretFacts === null ? [] : FACT_COLUMNS
  const extra = [...plan.extras, ...facts].map(({ name }) => name)
  return {
    ...plan,
    columns: columnsOf({ extract, transform: { columns: [...own, ...extra], extraColumns: plan.extras } }),
  }
}

/** @param changes.window the requested range, all of it the chain's own */
export function pageContext(
  changes: Partial<Omit<PageContext, 'query'>> & { query?: Query; window?: Window } = {},
): PageContext {
  const { query = { type: 'domain', fqdn: 'scatterholt.com' }, window = null, ...rest } = changes
  const named = nameQuery(query, queryLabel(query))
  return {
    query: named,
    partition: partition(named, window).key,
    page: 3,
    requested: window,
    own: window,
    queryValue: 'scatterholt.com',
    since: null,
    recent: [],
    known: [],
    ...rest,
  }
}

/** The rows of a page as plain values, whatever shape the columns have. */
export function rowsOf(page: DecodedPage): readonly Row[] {
  if (page.recordBatch === null) return []
  const recordBatch = decodeRecordBatch(page.recordBatch)
  const names = recordBatch.columns.map(({ name }) => name)
  return cellsOf(recordBatch).map((cells) => Object.fromEntries(cells.map((cell, i) => [names[i]!, cell])))
}
