import * as z from 'zod'
import { pipelineFile } from './file-schema.ts'

type Schema = z.core.JSONSchema.BaseSchema

/** A string with a reference can stand for a value of any type. */
const REFERENCE: Schema = { type: 'string', pattern: '\\$\\{' }

/** The JSON Schema (draft 2020-12) of pipeline files, for editors, made from the schema that the reader uses. */
export function pipelineJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(pipelineFile, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (['string', 'number', 'boolean', 'enum'].includes(zodSchema._zod.def.type))
        allowReference(jsonSchema)
    },
  })
  addExamples(schema, '')
  // Required keys may be in a file that this one extends.
  delete schema.required
  const service = schema.properties?.service
  if (typeof service === 'object') delete service.required
  return {
    $schema: schema.$schema,
    title: 'Spillway pipeline',
    description: 'What to export from the service, how to mask it and where to write it.',
    ...schema,
    patternProperties: { '^x-': { description: 'Ignored: a place for YAML anchors.' } },
  }
}

function allowReference(schema: Schema): void {
  // A scalar that carries a description is visited twice: with it and without.
  if (schema.anyOf !== undefined) return
  if (schema.type === 'string' && schema.pattern === undefined && schema.enum === undefined) return
  const { description, default: byDefault, ...own } = schema
  for (const key of Object.keys(own)) delete schema[key]
  schema.anyOf = [own, REFERENCE]
}

function addExamples(schema: Schema, prefix: string): void {
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (typeof member !== 'object') continue
    const path = `${prefix}${key}`
    const { example, byDefault } = EXAMPLES[path] ?? {}
    if (example !== undefined) member.examples = [example]
    if (byDefault !== undefined) member.default = byDefault
    addExamples(member, `${path}.`)
    const items = member.items
    if (typeof items !== 'object' || Array.isArray(items)) continue
    for (const kind of items.oneOf ?? items.anyOf ?? []) addExamples(kind, `${path}.`)
  }
}

/**
 * An example for each key of a pipeline file, and the defaults that the schema does not fill in. Editors show both;
 * `check` shows the default.
 */
const EXAMPLES: Readonly<Record<string, Example>> = {
  extends: { example: 'base.yaml' },
  name: { example: 'acme-backfill' },
  service: { example: { base_url: 'https://api.example.com/firework' } },
  'service.base_url': { example: 'https://api.example.com/firework' },
  'service.allow_http': { example: true },
  'service.token_env': { example: 'ACME_TOKEN', byDefault: 'SPILLWAY_TOKEN' },
  'service.api_key_env': { example: 'SPILLWAY_API_KEY' },
  'service.token_url': { example: '/tokens/generate', byDefault: '/tokens/generate' },
  'service.tenant_id': { example: 1 },
  'service.token_lifetime': { example: '30m', byDefault: '1h' },
  'service.token_test_url': { example: '/tokens/test' },
  'service.organization': { example: 'acme' },
  'service.search_path': { example: '/v4/credentials/global/_search' },
  'service.report_path': { example: '/v4/threat_flow/reports' },
  'service.requests_per_second': { example: 0.5 },
  'service.basic_requests_per_second': { example: 2 },
  'service.timeout': { example: '120s' },
  'service.retries': { example: 20 },
  'service.max_response_bytes': { example: '64MB' },
  extract: { example: { domains: ['acme.com'], windows: { from: '2024-01-01', every: 'month' } } },
  'extract.resource': { example: 'reports' },
  'extract.domains': { example: ['acme.com', 'acme.org'] },
  'extract.domains_file': { example: 'domains.txt' },
  'extract.queries': { example: [{ type: 'auth_domain', fqdn: 'login.acme.com' }] },
  'extract.queries.type': { example: 'domain' },
  'extract.queries.fqdn': { example: 'acme.com' },
  'extract.queries.email': { example: 'a@acme.com' },
  'extract.queries.keyword': { example: 'jane.doe' },
  'extract.queries.secret_env': { example: 'LEAKED_PASSWORD' },
  'extract.queries.as': { example: 'case-17' },
  'extract.ids': { example: [1, 2] },
  'extract.all': { example: true },
  'extract.windows': { example: { from: '2024-01-01', until: 'now', every: 'month' } },
  'extract.windows.from': { example: '2024-01-01' },
  'extract.windows.until': { example: '2024-07-01' },
  'extract.windows.every': { example: 'month' },
  'extract.windows.per_chain': { example: 12 },
  'extract.lag': { example: '6h', byDefault: '15m' },
  'extract.order': { example: 'desc' },
  'extract.page_size': { example: 1000 },
  'extract.include': { example: ['known_password_id'] },
  'extract.concurrency': { example: 8 },
  'extract.max_requests': { example: 2000 },
  'extract.monthly_searches': { example: 5000 },
  'extract.min_searches_remaining': { example: 1000 },
  transform: { example: { secret: 'hmac' } },
  'transform.secret': { example: 'hmac' },
  'transform.identity': { example: 'hmac' },
  'transform.mask_key_env': { example: 'ACME_MASK_KEY' },
  'transform.columns': { example: ['id', 'domain', 'imported_at', 'source_name'] },
  'transform.extra_columns': {
    example: ['event_uid', { name: 'severity', path: 'details.severity', type: 'string' }],
  },
  'transform.extra_columns.name': { example: 'severity' },
  'transform.extra_columns.path': { example: 'details.severity' },
  'transform.extra_columns.type': { example: 'string' },
  'transform.on_invalid': { example: 'fail' },
  'transform.max_quarantined': { example: '0.5%' },
  load: { example: { format: 'parquet', path: 'output/acme' } },
  'load.format': { example: 'csv' },
  'load.engine': { example: 'parquetjs-lite' },
  'load.path': { example: 'output/acme' },
  'load.s3': { example: { endpoint: 'https://minio.example.com' } },
  'load.s3.endpoint': { example: 'https://minio.example.com' },
  'load.s3.region': { example: 'eu-central-1' },
  'load.s3.allow_http': { example: true },
  'load.s3.path_style': { example: true },
  'load.azure': { example: { endpoint: 'https://acme.blob.core.chinacloudapi.cn' } },
  'load.azure.endpoint': { example: 'https://acme.blob.core.chinacloudapi.cn' },
  'load.partition_by': { example: ['window'] },
  'load.shard_rows': { example: 5_000_000 },
  'load.compression': { example: 'gzip' },
  'load.table_formats': { example: ['iceberg', 'delta'] },
  'load.table_location': { example: 's3://lake/acme' },
  'load.table_snapshots': { example: 100 },
  'load.keep': { example: '24mo' },
  'load.file_mode': { example: '0640' },
  'load.csv': { example: { escape_formulas: true } },
  'load.csv.escape_formulas': { example: true },
  'load.parquet': { example: { encodings: 'plain' } },
  'load.parquet.encodings': { example: 'plain', byDefault: 'compact' },
  'load.parquet.bloom_filters': { example: ['identity_name'] },
  state: { example: { path: '/var/lib/spillway/acme' } },
  'state.path': { example: '/var/lib/spillway/acme' },
}

type Example = { readonly example: unknown; readonly byDefault?: unknown }
