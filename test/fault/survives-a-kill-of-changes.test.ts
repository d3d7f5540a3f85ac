import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quarantineOf } from '../support/quarantine.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  carriedOut,
  expectNamedFilesToBeThere,
  expectSettled,
  type Layout,
  tablesOf,
  worldsOfFile,
} from './changes-world.ts'
import { missingRows, rowsOf } from './rows.ts'
import { concurrently, shardHashes } from './support.ts'
import { type Sample, sampledCalls } from './trial.ts'

const worldOf = worldsOfFile()

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls of the change itself. Those for the lock are the same in every run. */
const OWN_WORK =
  /checkpoint|manifest|signed|_SUCCESS|forgotten|^rm |_state\/(?:log|sealed)|credentials|_quarantine|_iceberg|_delta_log|^sync $/

/** Until the middle of February: the windows of January go. */
const AGE = `${Math.floor((Date.now() - Date.parse('2024-02-15T12:00:00Z')) / 86_400_000)}d`
const OF_JANUARY = ['prune', '--older-than', AGE, '--yes']
const isOfFebruary = (row: string): boolean => JSON.parse(row)[5].startsWith('2024-02')

type Case = { readonly change: Change; readonly layout: Layout; readonly words?: readonly string[] }

const CASES: readonly Case[] = [
  { change: 'forget', layout: 'partition_by: [query, window]' },
  { change: 'prune', layout: 'partition_by: [query, window]', words: OF_JANUARY },
  { change: 'redo', layout: 'partition_by: [query, window]' },
  { change: 'forget', layout: 'unfinished' },
  { change: 'redo', layout: 'partition_by: none' },
  // No layout has small shards that `compact` would write together.
  ...Object.keys(CHANGES)
    .filter((change) => !['repair', 'redo of a part', 'compact'].includes(change))
    .map((change) => ({ change, layout: 'with tables' }) as const),
]

/** What the manifest counts, and how many items are in quarantine. */
async function countsOf(output: string) {
  const { totals, prunes } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  const { rows, quarantined, forgotten } = totals
  const pruned = prunes.map(({ pruned_at: _, before: __, ...counts }: Record<string, unknown>) => counts)
  return { rows, quarantined, forgotten, pruned, items: (await quarantineOf(output)).length }
}

test.each(some(CASES, 1))(
  'a killed $change, $layout, is carried out or not, whoever reads misses no file, and the same command completes it',
  async ({ change, layout, words = CHANGES[change]! }) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf(change, words)
    const left =
      words === OF_JANUARY
        ? new Map([...world.rows].filter(([row]) => isOfFebruary(row)))
        : world.outcomes(change, null)[1]!
    if (words === OF_JANUARY) expect([0, world.rows.size]).not.toContain(left.size)
    const isExported = layout !== 'unfinished' && change !== 'first run'
    const counts = await world.onCopy(async (copy) => {
      await exits(0, copy.command(words))
      await expectSettled(copy, [left], 'undisturbed', words === OF_JANUARY)
      return countsOf(copy.output)
    }, change)
    const faults = sampledCalls(calls, ONE).flatMap((number) => {
      const call = calls[number - 1]!
      // Shards are removed concurrently: the progress of the others at a power cut is not known.
      const isFlush = /^sync (?!credentials)/.test(call)
      return OWN_WORK.test(call) ? [`${isFlush ? 'power' : 'kill'}:${number}`] : []
    })
    expect(faults.length).toBeGreaterThan(5)
    await concurrently(some(faults, 1), (fault) =>
      world.onCopy(async (copy) => {
        const { output, command } = copy
        const about = `${change}, ${layout}: ${fault} ${calls[Number(fault.split(':')[1]) - 1]}`
        const former = await shardHashes(output)
        const sent = copy.requests()
        const ended = await command(words, fault)
        // Files are removed side by side, so a call's number may stand for another one, or for none.
        if (ended.signal !== 'SIGKILL') expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
        await expectNamedFilesToBeThere(copy, about)
        // Between the names of new shards and the removal of old ones, rows may be there twice, never not at all.
        const files = await shardHashes(output)
        if (isExported) expect(missingRows(left, await rowsOf(output)), about).toBe(0)
        const again = await carriedOut(copy, words, about)
        expect(again.code, `${about}\n${again.stderr}`).toBe(0)
        if (isExported && words[0] !== 'run') expect(copy.requests(), about).toBe(sent)
        await expectSettled(copy, [left], about, words === OF_JANUARY)
        expect(await countsOf(output), about).toEqual(counts)
        // Shards are never changed: what holds other rows has another name.
        for (const [path, hash] of await shardHashes(output))
          for (const before of [former, files]) expect([undefined, hash], path).toContain(before.get(path))
      }, change),
    )
  },
)

test.runIf(THOROUGH)(
  '--fresh removes the tables before the first shard, so no snapshot names a path that is used again',
  async () => {
    const world = await worldOf('with tables')
    await world.onCopy(async (copy) => {
      const fresh = ['run', '--fresh', '--yes']
      const ended = await copy.command(fresh, 'kill:rmdir credentials/query=domain.quillmere.net')
      expect(ended.signal).toBe('SIGKILL')
      expect((await shardPaths(copy.output)).length).toBeGreaterThan(0)
      for (const folder of ['_iceberg/metadata', '_delta_log'])
        expect(existsSync(join(copy.output, folder)), folder).toBe(false)
      await exits(0, copy.command(fresh))
      expect(await tablesOf(copy.output)).toHaveLength(2)
      await expectSettled(copy, [world.rows], 'made anew')
    })
  },
)
