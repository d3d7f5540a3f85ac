import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { pipelineFile, pipelineJsonSchema } from '../../src/pipeline/schema/file-schema.ts'
import { type Key, keysOf } from '../../src/pipeline/schema/key.ts'

const REFERENCE = readFileSync(join(import.meta.dirname, '../../docs/pipeline.md'), 'utf8')
const KEYS = keysOf(pipelineFile)

/** Keys as in the reference: below their section, with a dot if they are nested in it. */
function leavesOf(keys: readonly Key[], prefix = ''): Key[] {
  return keys.flatMap((key) => {
    const name = `${prefix}${key.name}`
    return key.keys === null ? [{ ...key, name }] : leavesOf(key.keys, `${name}.`)
  })
}

/** The rows of the tables of keys in a section of the reference: each key, and what is in the column of defaults. */
function rowsOf(section: string): Map<string, string> {
  const text = REFERENCE.split(`\n## ${section}\n`)[1]?.split('\n## ')[0] ?? ''
  const tables = text.split(/^\| key \| default \|.*$/m).slice(1)
  const rows = new Map<string, string>()
  for (const table of tables) {
    for (const [, names = '', byDefault = ''] of table
      .split('\n\n')[0]!
      .matchAll(/^\| (`.*?`) \| (.*?) ?\|/gm)) {
      for (const name of names.replaceAll('`', '').split(', ')) rows.set(name, byDefault)
    }
  }
  return rows
}

const SECTIONS = [
  { section: 'Top', keys: KEYS.filter(({ keys }) => keys === null) },
  ...KEYS.flatMap(({ name, keys }) => (keys === null ? [] : [{ section: name, keys: leavesOf(keys) }])),
]

it.each(SECTIONS)(
  'docs/pipeline.md has every key of $section, no other, and its default',
  ({ section, keys }) => {
    const rows = rowsOf(section)
    expect([...rows.keys()].toSorted()).toEqual(keys.map(({ name }) => name).toSorted())
    for (const { name, byDefault } of keys) {
      const shown = rows.get(name) ?? ''
      if (Array.isArray(byDefault) && byDefault.length === 0)
        expect({ name, shown }).toEqual({ name, shown: 'none' })
      else if (byDefault !== undefined)
        expect({ name, shown: parse(shown.replace(/^`(.*)`$/, '$1')) }).toEqual({ name, shown: byDefault })
    }
  },
)

type Schema = {
  readonly enum?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
}

/** The words of which a value has to be one. */
function wordsOf({ enum: words = [], anyOf = [], items }: Schema): readonly string[] {
  return [...words, ...anyOf.flatMap(wordsOf), ...(items === undefined ? [] : wordsOf(items))]
}

it('and every word of a choice', () => {
  const { properties } = pipelineJsonSchema() as {
    properties: Record<string, { properties?: Record<string, Schema> }>
  }
  const lines = REFERENCE.split('\n').filter((line) => line.startsWith('| `'))
  const missing = Object.values(properties).flatMap(({ properties: keys = {} }) =>
    Object.entries(keys).flatMap(([key, schema]) => {
      const row = lines.find((line) => line.startsWith(`| \`${key}\``)) ?? ''
      const text = row.includes('see below') ? REFERENCE : row
      return wordsOf(schema).flatMap((word) =>
        new RegExp(`\\b${word}\\b`).test(text) ? [] : [`${key}: ${word}`],
      )
    }),
  )
  expect(missing).toEqual([])
})
