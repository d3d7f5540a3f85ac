import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { losingPowerAfter } from '../support/lost-power.ts'

const afterLostPower = losingPowerAfter(join(import.meta.dirname, 'lose-power.mjs'))

const SHARD = 'credentials/query=a/part-00000.parquet'

it.each([
  ['entry', { '_state/log/1': 'whole' }],
  [
    'entries at the same time',
    { '_state/log/1': 'whole', '_state/log/2': 'whole', '_state/log/3': 'whole', '_state/log/4': 'whole' },
  ],
  [
    'files of new folders',
    {
      'credentials/0/2': 'whole',
      'credentials/0/4': 'whole',
      'credentials/1/1': 'whole',
      'credentials/1/3': 'whole',
    },
  ],
  ['file written anew', { '_manifest.json': 'whole' }],
  ['shard', { [SHARD]: 'whole' }],
  ['second shard', { [SHARD]: 'whole', 'credentials/query=a/part-00001.parquet': '#'.repeat(2 << 20) }],
  ['removal beside a creation', { 'credentials/a/2': 'whole' }],
])('a completed %s is unchanged after a loss of power', (what, expected) => {
  const { root } = afterLostPower(what)
  const files = existsSync(root) ? readdirSync(root, { recursive: true, withFileTypes: true }) : []
  const found = files
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('open.'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(root.length + 1), readFileSync(path, 'utf8')])
  expect(Object.fromEntries(found)).toEqual(expected)
})
