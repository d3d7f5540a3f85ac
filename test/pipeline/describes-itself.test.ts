import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { pipelineJsonSchema, readPipeline } from '../../src/pipeline/index.ts'
import { read, SMALLEST } from './pipeline-file.ts'

const FOLDER = join(import.meta.dirname, '../../pipelines')
const EXAMPLES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'))
const ENV = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }

const schema = z.fromJSONSchema(pipelineJsonSchema())
const accepts = (text: string) => schema.safeParse(parse(text)).success

test('every commented line of the starter is valid too', async () => {
  const text = readFileSync(join(FOLDER, 'starter.yaml'), 'utf8')
    .replace('  token_env: SPILLWAY_TOKEN', '  # token_env: SPILLWAY_TOKEN')
    .replaceAll(/^ {2}# (\w+:| {2}- )/gm, '  $1')
    .replace('  # token_env', '  #token_env')
    .replace(/^ {2}token_env.*$/m, '')
  expect(text).not.toMatch(/^ {2}# \w+:/m)
  expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
  const pipeline = await read(text, { env: ENV, files: { 'domains.txt': 'acme.com\n' } })
  expect(pipeline.extract.queries).toHaveLength(6)
  expect(accepts(text)).toBe(true)
})

test('there are examples', () => expect(EXAMPLES).toContain('demo.yaml'))

test.each(EXAMPLES)(
  'pipelines/%s is valid on the oldest Node, for the reader and for editors',
  async (name) => {
    const pipeline = await readPipeline(join(FOLDER, name), { env: ENV, cwd: '/' })
    expect(name).toBe(`${pipeline.name}.yaml`)
    expect(pipeline.extract.queries.length).toBeGreaterThan(0)
    expect(pipeline.load.path).toBe(`/output/${pipeline.name}`)
    expect(accepts(readFileSync(join(FOLDER, name), 'utf8'))).toBe(true)
  },
)

test('editors flag unknown keys and wrong values, and accept references', () => {
  expect(accepts(SMALLEST)).toBe(true)
  expect(accepts(`${SMALLEST}lod: {}\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { fromat: csv }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { shard_rows: many }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { shard_rows: "\${ROWS:-5}" }\n`)).toBe(true)
  expect(accepts(SMALLEST.replace('domains: [acme.com]', 'resource: feed\n  identifiers: [1]'))).toBe(true)
  expect(accepts(`${SMALLEST}load: { format: csv, csv: { escape_formulas: true } }\n`)).toBe(true)
  const extra = (columns: string) => `${SMALLEST}transform: { extra_columns: [${columns}] }\n`
  expect(accepts(extra('source_url, { name: a, path: b, type: int64 }'))).toBe(true)
  for (const wrong of [
    'evnt_uid',
    '{ name: a, path: b, type: text }',
    '{ name: a, path: b, type: json, of: c }',
  ])
    expect(accepts(extra(wrong))).toBe(false)
  expect(accepts(`${SMALLEST}load: { path: "s3://bucket/a", s3: { region: eu-central-1 } }\n`)).toBe(true)
  // What is missing here may be in the file that it extends, or in one that extends it.
  expect(accepts('extends: base.yaml\nname: acme\nload: { csv: { escape_formulas: true } }\n')).toBe(true)
  expect(accepts(`${SMALLEST}x-usual: &usual { shard_rows: many }\n`)).toBe(true)
})

test('every key has a description, a default (or the effect of omitting it, or that it is required)', async () => {
  const undescribed: string[] = []
  const defaultless: string[] = []
  const visit = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, child] of Object.entries(node)) {
      if (key === 'properties') {
        for (const [name, property] of Object.entries<Record<string, unknown>>(child)) {
          if (property.description === undefined) undescribed.push(`${path}.${name}`)
          const isRequired = (node as { required?: string[] }).required?.includes(name)
          const saysWhy = /Default:? |Required\.|none: never/.test(String(property.description))
          if (property.default === undefined && !isRequired && !saysWhy) defaultless.push(`${path}.${name}`)
          visit(property, `${path}.${name}`)
        }
      } else visit(child, path)
    }
  }
  visit(pipelineJsonSchema(), '')
  expect({ undescribed, defaultless }).toEqual({ undescribed: [], defaultless: [] })
  expect(pipelineJsonSchema()).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    additionalProperties: false,
  })
})
