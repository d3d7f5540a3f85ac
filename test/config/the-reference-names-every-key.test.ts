import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { pipelineJsonSchema } from '../../src/config/index.ts'

type Schema = { readonly properties?: Readonly<Record<string, Schema>> }

const REFERENCE = readFileSync(join(import.meta.dirname, '../../docs/pipeline.md'), 'utf8')

/** Keys as in the reference: below their section, with a dot if they are nested in it. */
function keysOf(schema: Schema, prefix = ''): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, value]) =>
    value.properties === undefined ? [`${prefix}${key}`] : keysOf(value, `${prefix}${key}.`),
  )
}

const SECTIONS = Object.entries((pipelineJsonSchema() as Schema).properties ?? {})

it.each(SECTIONS)('docs/pipeline.md has every key of %s', (section, schema) => {
  const title = schema.properties === undefined ? 'Top' : section
  const named = REFERENCE.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
  const keys = schema.properties === undefined ? [section] : keysOf(schema)
  expect(keys.filter((key) => !named.includes(`\`${key}\``))).toEqual([])
})
