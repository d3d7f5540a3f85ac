import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { pipelineFile } from '../../src/pipeline/schema/file-schema.ts'
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
