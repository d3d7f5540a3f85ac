import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { BUCKET, bucketHere } from '../support/bucket.ts'
import { exits, start } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { PIPELINE, type Workspace } from '../support/workspace.ts'
import { exportPlanted, filesWith, type Planted } from './planted.ts'

const OURS = 'ada.loam@scatterholt.example'
/** Part of everybody else's address. */
const ELSEWHERE = 'elsewhere.example'

const ITEMS: readonly Planted[] = Array.from({ length: 6_000 }, (_, i) => ({
  id: i + 1,
  identity_name: i % 200 === 0 ? OURS : i % 3 === 0 ? `zo\u00eb${i}@${ELSEWHERE}` : `person${i}@${ELSEWHERE}`,
}))

/** Kills the command after each of some times, then lets it end, and looks at all that was written. */
async function expectNothingLeft(here: Workspace): Promise<void> {
  await writeFile(join(here.folder, 'people.csv'), `mail\n${OURS}\n`)
  const words = ['match', PIPELINE, '--directory', 'people.csv', '--format', 'csv', '--output', 'who.csv']
  for (const ms of THOROUGH ? [150, 250, 350, 450, 600, 800, 1200] : [450]) {
    const { child, result } = start(words, here.folder, here.env)
    await setTimeout(ms)
    child.kill('SIGKILL')
    await result
    expect(await filesWith(here.folder, [ELSEWHERE], ['out/credentials', PIPELINE])).toEqual([])
  }
  const ended = await exits(0, here.cli(...words, '--log-level', 'debug'))
  expect(ended.stderr).toContain('1 of 1 person: 30 credentials from 1 source')
  expect(ended.stdout + ended.stderr).not.toContain(ELSEWHERE)
  expect(await filesWith(here.folder, [ELSEWHERE], ['out/credentials', PIPELINE])).toEqual([])
  expect((await readdir(here.folder)).sort()).not.toContainEqual(expect.stringMatching(/^\.tmp|\.duckdb/))
  expect(await readdir(join(here.folder, 'tmp'))).toEqual([])
}

it('of a data set on a disk, also after a kill', async () => {
  await expectNothingLeft(await exportPlanted(ITEMS, { load: { format: 'csv', shard_rows: 1500 } }, {}, 4000))
})

it('of a data set that a run holds, in its state before the run', async () => {
  const here = await exportPlanted(ITEMS.slice(0, 500), {}, {}, 40)
  await writeFile(join(here.folder, 'people.csv'), `mail\n${OURS}\n`)
  const run = start(['run', PIPELINE, '--redo', '*', '--log-format', 'json'], here.folder, here.env)
  await run.until((stderr) => stderr.includes('page'))
  const { stderr } = await exits(0, here.call('match', '--directory', 'people.csv'))
  expect(stderr).toContain('1 of 1 person: 3 credentials from 1 source')
  run.child.kill('SIGKILL')
  await run.result
})

it('of a data set in a bucket', async () => {
  const { env } = await bucketHere()
  const load = { path: `s3://${BUCKET}/acme`, format: 'csv', shard_rows: 1500 }
  await expectNothingLeft(await exportPlanted(ITEMS, { load }, env, 4000))
})
