import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BUCKET, bucketHere } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const READERS: readonly [string, ...string[]][] = [
  ['load', '--to', 'duckdb:leaks.db', '--json'],
  ['query', 'SELECT count(*) AS rows FROM credentials', '--json'],
  ['match', '--directory', 'people.csv', '--format', 'json'],
]

it.each(some(READERS, 2))('%s begins again where a compact takes its shards away', async (name, ...flags) => {
  const { double, env } = await bucketHere()
  const parts = (until: string) => ({
    extract: { domains: ['scatterholt.com'], windows: { from: '2024-01-01', until, every: 'month' } },
    load: { path: `s3://${BUCKET}/acme`, partition_by: ['query'] },
  })
  const here = await newWorkspace(parts('2024-02-01'), {}, env)
  for (const until of ['2024-02-01', '2024-03-01']) {
    await here.write(parts(until))
    await exits(0, here.call('run'))
  }
  const anyone = 'SELECT min(identity_name) AS mail FROM credentials'
  const { stdout } = await exits(0, here.call('query', anyone, '--csv'))
  await writeFile(join(here.folder, 'people.csv'), stdout)
  const undisturbed = await exits(0, here.call(name, ...flags))
  let isCompacted = false
  const compact = async (): Promise<void> => {
    isCompacted = true
    await exits(0, here.call('compact', '--min-shards', '2'))
  }
  double.cues.before({ operation: 'GetObject', key: /part-\d+\.parquet$/ }, compact)
  const again = flags.map((word) => word.replace('leaks.db', 'again.db'))
  const disturbed = await exits(0, here.call(name, ...again))
  expect(isCompacted).toBe(true)
  const rowsIn = (text: string): unknown => {
    const value = JSON.parse(text)
    return 'rows' in value ? value.rows : value
  }
  expect(rowsIn(disturbed.stdout)).toEqual(rowsIn(undisturbed.stdout))
})
