import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { icebergRead } from 'icebird'
import { expect, test } from 'vitest'
import { cases } from '../support/thorough.ts'
import { icebergFiles, itemsOf, servedOver, type TableWorld, tableWorld } from './world.ts'

const MONTHS = ['2024-01', '2024-02', '2024-03']

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('', ' a ', '%2F', 'null'),
)
const time = fc
  .tuple(fc.constantFrom(...MONTHS), fc.integer({ min: 10, max: 28 }), fc.integer({ min: 0, max: 999_999 }))
  .map(([month, day, micros]) => `${month}-${day}T08:00:00.${String(micros).padStart(6, '0')}+00:00`)

const item = fc.record({
  id: fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.bigInt(2n ** 53n, 2n ** 53n + 9n)),
  imported_at: time,
  hash: fc.option(text),
  event_uid: fc.option(text),
  severity: fc.option(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)),
  pii_tags: fc.option(fc.array(text, { maxLength: 3 })),
  breached_at: fc.option(time),
})

const keyword = fc
  .oneof(
    fc.constantFrom('50% off', 'a/b', 'ümlaut 😀', "o'clock", '..'),
    fc.string({ minLength: 1, maxLength: 8 }),
  )
  .filter((name) => /^\S(?:.*\S)?$/.test(name) && !/[\p{C}*@]/u.test(name))

const given = fc.record({
  items: fc.uniqueArray(item, { maxLength: 12, selector: ({ id }) => id }),
  keywords: fc.uniqueArray(keyword, { minLength: 1, maxLength: 2, selector: (name) => name.toLowerCase() }),
  partition_by: fc.constantFrom<'none' | ('query' | 'window')[]>(['query', 'window'], 'none'),
})

type Row = Readonly<Record<string, unknown>>

test('both tables have the rows of the shards, and bounds that hold every value', async () => {
  await fc.assert(
    fc.asyncProperty(given, async ({ items, keywords, partition_by }) => {
      const root = await servedOver(() => world.out)
      const world: TableWorld = await tableWorld(
        items.map(({ pii_tags, breached_at, ...fields }) => {
          const [base] = itemsOf('2024-01-01')
          return { ...base, ...fields, source: { ...(base!.source as object), pii_tags, breached_at } }
        }),
        { table_formats: ['iceberg', 'delta'], table_location: root, partition_by },
      )
      world.queries = keywords.map((each) => ({ type: 'keyword', keyword: each }))
      world.transform = {
        extra_columns: [
          'event_uid',
          'source_pii_tags',
          { name: 'severity', path: 'severity', type: 'int64' },
        ],
      }
      expect(await world.run()).toMatchObject({ status: 'complete', rows: items.length * keywords.length })
      const shards = await world.shards()
      expect(await world.iceberg()).toEqual(shards)
      expect(await world.delta()).toEqual(shards)
      const rowsOf = new Map<string, readonly Row[]>()
      for (const path of shards) rowsOf.set(path, await rowsIn(join(world.out, path), false))
      const inFiles = await Promise.all(shards.map((path) => rowsIn(join(world.out, path), true)))
      const inTable = await icebergRead({ tableUrl: `${root}/_iceberg` })
      expect(inTable.map(asText).sort()).toEqual(inFiles.flat().map(asText).sort())
      await expectBounds(await icebergBounds(world), rowsOf)
      await expectBounds(await deltaBounds(world), rowsOf)
    }),
    { numRuns: cases(20, 2) },
  )
})

/** @param isAsTime times as dates, which have milliseconds, else in microseconds */
async function rowsIn(file: string, isAsTime: boolean): Promise<readonly Row[]> {
  const parsers = isAsTime ? {} : { timestampFromMicroseconds: (micros: bigint) => micros }
  return parquetReadObjects({ file: await asyncBufferFromFile(file), parsers })
}

function asText(row: Row): string {
  const values = Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(values, (_, value) => (typeof value === 'bigint' ? `${value}n` : (value ?? null)))
}

/** Of a shard, by column; times in microseconds. */
type Bounds = {
  readonly path: string
  readonly column: string
  readonly min: Value
  readonly max: Value
  readonly slack: bigint
}
type Value = bigint | string

/** Bounds hold the values of the rows, and are no wider than the precision of the format asks for. */
async function expectBounds(
  bounds: readonly Bounds[],
  rowsOf: ReadonlyMap<string, readonly Row[]>,
): Promise<void> {
  for (const { path, column, min, max, slack } of bounds) {
    const values = rowsOf.get(path)!.map((row) => row[column] as Value | null | undefined)
    const found = values.filter((value) => value != null).sort(compared)
    const about = `${path} ${column}`
    const [first, last] = [found[0]!, found.at(-1)!]
    if (typeof min === 'string') expect([min, max], about).toEqual([first, last])
    else {
      expect((first as bigint) - min, about).toBeGreaterThanOrEqual(0n)
      expect((first as bigint) - min, about).toBeLessThanOrEqual(slack)
      expect((max as bigint) - (last as bigint), about).toBeGreaterThanOrEqual(0n)
      expect((max as bigint) - (last as bigint), about).toBeLessThanOrEqual(slack)
    }
  }
  const isEmpty = [...rowsOf.values()].every((rows) => rows.length === 0)
  if (!isEmpty) expect(new Set(bounds.map(({ column }) => column))).toContain('imported_at')
}

function compared(a: Value, b: Value): number {
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string))
  return Number(a - (b as bigint) > 0n) - Number(a - (b as bigint) < 0n)
}

async function icebergBounds({ out, metadata }: TableWorld): Promise<readonly Bounds[]> {
  const current = await metadata()
  const fields = new Map(current.schemas.at(-1)!.fields.map((each) => [each.id, each]))
  return (await icebergFiles(out, current)).flatMap(({ path, lower_bounds, upper_bounds }) =>
    lower_bounds.map(({ key, value }, index): Bounds => {
      const { name, type } = fields.get(key)!
      const decoded = (bytes: Buffer): Value =>
        type === 'string' ? bytes.toString() : bytes.readBigInt64LE()
      const [min, max] = [decoded(value), decoded(upper_bounds[index]!.value)]
      return { path, column: name, min, max, slack: 0n }
    }),
  )
}

async function deltaBounds({ out }: TableWorld): Promise<readonly Bounds[]> {
  const bounds: Bounds[] = []
  for (const name of await readdir(join(out, '_delta_log'))) {
    for (const line of (await readFile(join(out, '_delta_log', name), 'utf8')).trimEnd().split('\n')) {
      const { add } = JSON.parse(line)
      if (add === undefined) continue
      // JSON.parse would round them.
      const { minValues, maxValues } = JSON.parse(add.stats.replaceAll(/":(-?\d+)/g, '":{"int":"$1"}'))
      for (const column of Object.keys(minValues)) {
        const [min, max] = [minValues[column], maxValues[column]].map((value) => deltaValue(column, value))
        const slack = column.endsWith('_at') ? 999n : 0n
        bounds.push({ path: decodeURIComponent(add.path), column, min: min!, max: max!, slack })
      }
    }
  }
  return bounds
}

function deltaValue(column: string, value: string | { int: string }): Value {
  if (typeof value === 'object') return BigInt(value.int)
  return column.endsWith('_at') ? BigInt(Date.parse(value)) * 1000n : value
}
