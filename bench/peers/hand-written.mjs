/**
 * Baseline: what a data engineer writes in an afternoon, with fetch, JSON, zod and a common writer. No retries, no
 * checkpoint, no fsync. Arguments: base URL, partitions, writer (csv-stringify | hyparquet-writer | parquetjs-lite).
 */
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { stringify } from 'csv-stringify'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import parquetjs from 'parquetjs-lite'
import { z } from 'zod'

const [, , baseUrl, partitions, writer] = process.argv

const text = z.string().nullable()
const Page = z.object({
  items: z.array(
    z.object({
      id: z.int(),
      domain: text,
      identity_name: z.string(),
      hash: text,
      hash_type: text,
      imported_at: z.string(),
      source_id: z.string(),
      source: z.object({
        name: text,
        description_en: text,
        description_fr: text,
        is_alert_enabled: z.boolean(),
        breached_at: text,
        leaked_at: text,
      }),
    }),
  ),
  next: z.string().nullable(),
})

function flatten({ source, ...item }) {
  return {
    ...item,
    hash: item.hash === null ? null : '[REDACTED]',
    source_name: source.name,
    source_description_en: source.description_en,
    source_description_fr: source.description_fr,
    source_is_alert_enabled: source.is_alert_enabled,
    source_breached_at: source.breached_at,
    source_leaked_at: source.leaked_at,
    query_type: 'domain',
    query_value: 'scatterholt.com',
  }
}

const openSink = {
  'csv-stringify': async (file) => {
    const stream = stringify({ header: true })
    const out = createWriteStream(`${file}.csv`)
    stream.pipe(out)
    return {
      write: async (rows) => {
        for (const row of rows) {
          if (!stream.write(row)) await new Promise((resolve) => stream.once('drain', resolve))
        }
      },
      close: async () => {
        stream.end()
        await finished(out)
      },
    }
  },
  'hyparquet-writer': async (file) => {
    const bytes = new ByteWriter()
    const parquet = new ParquetWriter({ writer: bytes, schema: hyparquetSchema() })
    return {
      write: async (rows) => {
        const times = new Set(['imported_at', 'source_breached_at', 'source_leaked_at'])
        const columnData = Object.keys(rows[0]).map((name) => ({
          name,
          data: rows.map((row) =>
            times.has(name) && row[name] !== null
              ? new Date(row[name])
              : name === 'id'
                ? BigInt(row[name])
                : row[name],
          ),
        }))
        parquet.write({ columnData, rowGroupSize: rows.length })
      },
      close: async () => {
        parquet.finish()
        writeFileSync(`${file}.parquet`, bytes.getBytes())
      },
    }
  },
  'parquetjs-lite': async (file) => {
    const parquet = await parquetjs.ParquetWriter.openFile(parquetjsSchema(), `${file}.parquet`)
    parquet.setRowGroupSize(10_000)
    return {
      write: async (rows) => {
        for (const row of rows) {
          const filled = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
          await parquet.appendRow({ ...filled, imported_at: new Date(row.imported_at) })
        }
      },
      close: () => parquet.close(),
    }
  },
}

const TEXTS = [
  'domain',
  'identity_name',
  'hash',
  'hash_type',
  'source_id',
  'source_name',
  'source_description_en',
  'source_description_fr',
  'query_type',
  'query_value',
]

function hyparquetSchema() {
  const optional = { repetition_type: 'OPTIONAL' }
  const time = { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', ...optional }
  const textColumn = { type: 'BYTE_ARRAY', converted_type: 'UTF8', ...optional }
  const order = [
    'id',
    'domain',
    'identity_name',
    'hash',
    'hash_type',
    'imported_at',
    'source_id',
    'source_name',
    'source_description_en',
    'source_description_fr',
    'source_is_alert_enabled',
    'source_breached_at',
    'source_leaked_at',
    'query_type',
    'query_value',
  ]
  const kinds = {
    id: { type: 'INT64', ...optional },
    imported_at: time,
    source_breached_at: time,
    source_leaked_at: time,
    source_is_alert_enabled: { type: 'BOOLEAN', ...optional },
  }
  return [
    { name: 'root', num_children: order.length },
    ...order.map((name) => ({ name, ...(kinds[name] ?? textColumn) })),
  ]
}

function parquetjsSchema() {
  const columns = {
    id: { type: 'INT64' },
    imported_at: { type: 'TIMESTAMP_MILLIS' },
    source_is_alert_enabled: { type: 'BOOLEAN', optional: true },
    source_breached_at: { type: 'UTF8', optional: true },
    source_leaked_at: { type: 'UTF8', optional: true },
  }
  for (const name of TEXTS) columns[name] = { type: 'UTF8', optional: true, compression: 'SNAPPY' }
  return new parquetjs.ParquetSchema(columns)
}

mkdirSync(process.env.BENCH_OUTPUT, { recursive: true })
const file = join(process.env.BENCH_OUTPUT, 'rows')
const sink = await openSink[writer](file)
for (let partition = 0; partition < Number(partitions); partition++) {
  let from = null
  do {
    const response = await fetch(`${baseUrl}/v4/credentials/global/_search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
      body: JSON.stringify({
        query: { type: 'domain', fqdn: `d${partition}.example.com` },
        size: 10_000,
        from,
      }),
    })
    const page = Page.parse(await response.json())
    await sink.write(page.items.map(flatten))
    from = page.next
  } while (from !== null)
}
await sink.close()
