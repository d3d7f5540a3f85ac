// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pipeline files refer to variables that way
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { pipelineJsonSchema, readPipeline, starterPipeline } from '../../src/config/index.ts'
import { read, SMALLEST } from './pipeline-file.ts'

const FOLDER = join(import.meta.dirname, '../../pipelines')
const EXAMPLES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'))
const ENV = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }

const schema = z.fromJSONSchema(pipelineJsonSchema())
const accepts = (text: string) => schema.safeParse(parse(text)).success

test('the starter is a valid pipeline once the base URL is set', async () => {
  const pipeline = await read(starterPipeline(), { env: ENV })
  expect(pipeline.service.baseUrl).toBe(ENV.SPILLWAY_BASE_URL)
  expect(accepts(starterPipeline())).toBe(true)
})

test('every commented line of the starter is valid too', async () => {
  const text = starterPipeline()
    .replace('  token_env: SPILLWAY_TOKEN', '  # token_env: SPILLWAY_TOKEN')
    .replaceAll(/^ {2}# (\w+:| {2}- )/gm, '  $1')
    .replace('  # token_env', '  #token_env')
    .replace(/^ {2}token_env.*$/m, '')
  expect(text).not.toMatch(/^ {2}# \w+:/m)
  const pipeline = await read(text, { env: ENV, files: { 'domains.txt': 'acme.com\n' } })
  expect(pipeline.extract.queries).toHaveLength(6)
  expect(accepts(text)).toBe(true)
})

test('there are examples', () => expect(EXAMPLES).toContain('demo.yaml'))

test.each(EXAMPLES)(
  'pipelines/%s is valid on the oldest Node, for the reader and for editors',
  async (name) => {
    const pipeline = await readPipeline(join(FOLDER, name), { env: ENV, cwd: '/', nodeVersion: 'v20.19.0' })
    expect(name).toBe(`${pipeline.name}.yaml`)
    expect(pipeline.extract.queries.length).toBeGreaterThan(0)
    expect(pipeline.load.path).toBe(`/output/${pipeline.name}`)
    expect(accepts(readFileSync(join(FOLDER, name), 'utf8'))).toBe(true)
  },
)

test('editors flag what the reader refuses, and accept references', () => {
  expect(accepts(SMALLEST)).toBe(true)
  expect(accepts(`${SMALLEST}lod: {}\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { fromat: csv }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { format: json }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { csv: { escape: true } }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { shard_rows: many }\n`)).toBe(false)
  expect(accepts(`${SMALLEST}load: { shard_rows: "\${ROWS:-5}" }\n`)).toBe(true)
  expect(accepts(`${SMALLEST}  queries: [{ type: secret, secret: x }]\n`)).toBe(false)
  expect(accepts(`${SMALLEST}  windows: { until: now }\n`)).toBe(false)
  expect(accepts(SMALLEST.replace(/service:\n.*\n/, ''))).toBe(false)
})

test('every key has a description', () => {
  const undescribed: string[] = []
  const visit = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, child] of Object.entries(node)) {
      if (key === 'properties') {
        for (const [name, property] of Object.entries<Record<string, unknown>>(child)) {
          if (property.description === undefined && property.const === undefined)
            undescribed.push(`${path}.${name}`)
          visit(property, `${path}.${name}`)
        }
      } else visit(child, path)
    }
  }
  visit(pipelineJsonSchema(), '')
  expect(undescribed).toEqual([])
  expect(pipelineJsonSchema()).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    additionalProperties: false,
    required: ['name', 'service', 'extract'],
  })
})
