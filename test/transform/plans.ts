import {
  allColumns,
  columnsOf,
  type DecodedPage,
  type DecodeSettings,
  decodeRecordBatch,
  droppedColumns,
  int64,
  nameQuery,
  type PageContext,
  partition,
  type Query,
  queryLabel,
  type TextVector,
  type Vector,
  type Window,
} from '../../src/core/index.ts'

export type Value = string | number | bigint | boolean | null | readonly string[]
export type Row = Readonly<Record<string, Value>>

/** A plan with every column that the policies keep. */
export function decodeSettings(changes: Partial<DecodeSettings> = {}): DecodeSettings {
  const plan: DecodeSettings = {
    resource: 'credentials',
    columns: [],
    extras: [],
    order: 'asc',
    secret: 'redact',
    identity: 'keep',
    maskKey: Buffer.from('a key of thirty-two bytes or more'),
    suppress: [],
    ...changes,
  }
  if (changes.columns !== undefined) return plan
  const dropped = droppedColumns(plan.secret, plan.identity)
  const columns = allColumns(plan.resource, ['known_password_id', 'auth_domains', 'urls'])
  const own = columns.map(({ name }) => name).filter((name) => !dropped.includes(name))
  const extract = { resource: plan.resource, include: ['known_password_id', 'auth_domains', 'urls'] }
  const extra = plan.extras.map(({ name }) => name)
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
    ...rest,
  }
}

/** The rows of a page as plain values, whatever shape the columns have. */
export function rowsOf(page: DecodedPage): readonly Row[] {
  if (page.recordBatch === null) return []
  const { rows, groups, columns } = decodeRecordBatch(page.recordBatch)
  const read = columns.map(({ name, group, values }) => {
    const value = reader(values)
    const indices = group === null ? undefined : groups[group]!.indices
    const entry = (row: number): number => (indices === undefined ? row : (indices?.[row] ?? 0))
    return { name, at: (row: number) => value(entry(row)) }
  })
  return Array.from({ length: rows }, (_, row) =>
    Object.fromEntries(read.map(({ name, at }) => [name, at(row)])),
  )
}

function reader(vector: Vector): (position: number) => Value {
  const isThere = (position: number): boolean => vector.valid === null || vector.valid[position] === 1
  switch (vector.kind) {
    case 'number':
    case 'int64':
      return (position) => (isThere(position) ? int64(vector.values[position]!) : null)
    case 'boolean':
      return (position) => (isThere(position) ? vector.values[position] === 1 : null)
    case 'text': {
      const text = textReader(vector)
      return (position) => (isThere(position) ? text(position) : null)
    }
    case 'list': {
      const text = textReader(vector.items)
      return (position) => {
        if (!isThere(position)) return null
        const texts: string[] = []
        for (let i = vector.offsets[position]!; i < vector.offsets[position + 1]!; i++) texts.push(text(i))
        return texts
      }
    }
  }
}

function textReader({ offsets, bytes }: TextVector): (position: number) => string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return (position) => buffer.toString('utf8', offsets[position], offsets[position + 1])
}
