import { describe, expect, it } from 'vitest'
import { verifyDataSet } from '../../src/index.ts'
import { readCsv, readParquet } from '../support/read-shards.ts'
import { queryPipeline } from '../support/rooms.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { exportHere, pipelineIn } from './in-process.ts'

const DOMAIN = 'scatterholt.com'
const FIELDS = { unknownFields: true, publicFields: true }
const EXTRA_COLUMNS = [
  'source_pii_tags',
  'event_uid',
  { name: 'ingest_shard', path: 'x_ingest.shard', type: 'int64' },
  { name: 'confidence', path: 'confidence', type: 'json' },
  'credential_hash',
  'source_url',
]
const NAMES = ['source_pii_tags', 'event_uid', 'ingest_shard', 'confidence', 'credential_hash', 'source_url']

const parts = (transform: object = { extra_columns: EXTRA_COLUMNS }, load: object = {}): PipelineParts => ({
  extract: {
    domains: [DOMAIN],
    windows: { from: '2024-01-01', until: '2025-01-01', every: 'year' },
    page_size: 70,
  },
  transform: { ...transform },
  load: { ...load },
})

/** The extra columns of each row by its id, derived from the sandbox's items. */
function expected({ sandbox }: Workspace): Readonly<Record<string, unknown>> {
  const items = [...sandbox.expected({ query: { type: 'domain', fqdn: DOMAIN } })]
  return Object.fromEntries(
    items.map((item) => {
      const { confidence, x_ingest } = item as unknown as { confidence: number; x_ingest: { shard: number } }
      return [
        item.id,
        {
          source_pii_tags: item.source?.pii_tags ?? null,
          event_uid: item.event_uid ?? null,
          ingest_shard: String(x_ingest.shard),
          confidence,
          credential_hash: item.credential_hash,
          source_url: item.source?.url ?? null,
        },
      ]
    }),
  )
}

function byId(rows: readonly Readonly<Record<string, unknown>>[]) {
  const pick = (row: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(NAMES.map((name) => [name, plain(name, row[name] ?? null)]))
  return Object.fromEntries(rows.map((row) => [String(row.id), pick(row)]))
}

/** DuckDB wraps lists in an object; CSV has them as JSON. JSON keeps zeros that a double does not. */
function plain(name: string, value: unknown): unknown {
  if (name === 'ingest_shard') return String(value)
  if (name === 'confidence') return Number(value)
  if (typeof value === 'string' && value.startsWith('[')) return JSON.parse(value)
  return value !== null && typeof value === 'object' && 'items' in value ? value.items : value
}

describe('extra columns', () => {
  const forms = [
    { format: 'parquet' },
    { format: 'parquet', engine: 'parquetjs-lite' },
    { format: 'csv' },
    { format: 'csv', engine: 'csv-stringify' },
  ]
  it.each(some(forms, 2))(
    'come after the others in $format by $engine, and verify and query know them',
    async (form) => {
      const here = await newWorkspace(
        parts({ columns: ['id', 'domain'], extra_columns: EXTRA_COLUMNS }, form),
        FIELDS,
      )
      await exportHere(here)
      const found = form.format === 'csv' ? await readCsv(here.output) : await readParquet(here.output)
      expect(Object.keys(found[0]!)).toEqual(['id', 'domain', ...NAMES])
      expect(byId(found)).toEqual(expected(here))
      const manifest = await here.manifest()
      expect(manifest.unknown_fields).toEqual({})
      expect(manifest.columns.slice(2)).toEqual(
        NAMES.map((name, i) => ({
          name,
          type: ['LIST<STRING>', 'STRING', 'INT64'][i] ?? 'STRING',
          nullable: true,
        })),
      )
      const pipeline = await pipelineIn(here)
      expect(await verifyDataSet(pipeline)).toMatchObject({ ok: true, problems: [] })
      const sql = `select count(event_uid)::int as n, count(distinct ingest_shard)::int as shards from credentials`
      const { rows } = await queryPipeline(pipeline, sql, { database: null, cwd: here.folder })
      expect(rows).toEqual([[Object.values(byId(found)).filter((row) => row.event_uid !== null).length, 8]])
    },
  )
})
