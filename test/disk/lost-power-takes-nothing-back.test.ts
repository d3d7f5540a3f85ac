import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from './temporary-store.ts'

const SCRIPT = join(import.meta.dirname, 'lose-power.mjs')
const FAULT = join(import.meta.dirname, '../fault/disk-fault.mjs')

/** The data set after a store has done its work and the power was lost right behind it. */
function afterLostPower(what: string): string {
  const folder = temporaryFolder()
  const environment = (root: string, fault: string) => ({
    PATH: process.env.PATH,
    NODE_OPTIONS: `--import ${FAULT}`,
    DISK_FAULT_ROOT: root,
    DISK_FAULT: fault,
    DISK_FAULT_COUNT: join(folder, 'calls'),
  })
  const [calm, root] = [join(folder, 'calm'), join(folder, 'data')]
  execFileSync(process.execPath, [SCRIPT, calm, what], { env: environment(calm, 'count') })
  const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n')
  expect(calls.at(-1)).toBe('mkdir end')
  const env = environment(root, `power:${calls.length}`)
  expect(spawnSync(process.execPath, [SCRIPT, root, what], { env }).signal).toBe('SIGKILL')
  expect(existsSync(join(root, 'end'))).toBe(false)
  return root
}

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
])('a %s that is said to be done is there as it was when the power is lost', (what, expected) => {
  const root = afterLostPower(what)
  const files = existsSync(root) ? readdirSync(root, { recursive: true, withFileTypes: true }) : []
  const found = files
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(root.length + 1), readFileSync(path, 'utf8')])
  expect(Object.fromEntries(found)).toEqual(expected)
})
