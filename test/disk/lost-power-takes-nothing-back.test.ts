import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { losingPowerAfter } from '../support/lost-power.ts'

const afterLostPower = losingPowerAfter(join(import.meta.dirname, 'lose-power.mjs'))

it.each([
  ['log', { '_state/open/0.log': 'whole' }],
  ['second log', { '_state/open/0.log': 'whole', '_state/open/1.log': 'whole' }],
  ['whole file', { '_manifest.json': 'whole' }],
  ['file written anew', { '_manifest.json': 'whole' }],
  ['shard', { 'credentials/query=a/part-00000.parquet': 'whole' }],
  [
    'second shard',
    {
      'credentials/query=a/part-00000.parquet': 'whole',
      'credentials/query=a/part-00001.parquet': 'whole',
    },
  ],
  ['quarantine', { '_quarantine/domain.a.com~all.jsonl': '{"id":1}\n' }],
  ['removal', {}],
])('a completed %s is unchanged after a loss of power', (what, expected) => {
  const { root } = afterLostPower(what)
  const files = existsSync(root) ? readdirSync(root, { recursive: true, withFileTypes: true }) : []
  const found = files
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(root.length + 1), readFileSync(path, 'utf8')])
  expect(Object.fromEntries(found)).toEqual(expected)
})
