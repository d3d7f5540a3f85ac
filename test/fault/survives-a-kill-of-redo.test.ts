import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { missingRows, rowsOf } from './rows.ts'
import { concurrently, diskFault, runCli, shardHashes, shardPaths } from './support.ts'
import { type Sample, sampledCalls, scenario, trial } from './trial.ts'

const figures = faultFigures('--redo killed or without power at every sort of disk call')

const REDO = ['run', 'pipeline.yaml', '--redo', '*']

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls that journal the redo, and those that replace what it has exported; pages are committed as in any run. */
const OWN_WORK = /checkpoint|manifest|_SUCCESS|^rm |_state\/(?:log|sealed)|credentials|_quarantine|^sync $/

/** Shards of the manifest, by path, with their digests. */
async function listed(output: string): Promise<ReadonlyMap<string, string>> {
  const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  return new Map(shards.map(({ path, sha256 }: { path: string; sha256: string }) => [path, sha256]))
}

test.each(some(['[query, window]', 'none'] as const, 1))(
  'a killed --redo loses no row, and whoever reads the manifest misses no file: partition_by %s',
  async (partitionBy) => {
    const export_ = scenario({ format: 'csv', partitionBy, sandbox: { invalidRate: 0.1 } })
    await trial(export_, async ({ workspace, run }) => {
      await exits(0, run())
      const rows = await rowsOf(workspace.output)
      const former = new Set(await shardPaths(workspace.output))

      const onCopy = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
        const folder = await mkdtemp(join(tmpdir(), 'spillway-redo-'))
        try {
          await cp(workspace.folder, folder, { recursive: true })
          return await work(folder)
        } finally {
          await rm(folder, { recursive: true, force: true })
        }
      }
      const command = (folder: string, args: readonly string[], env: Record<string, string> = {}) =>
        runCli({ args, cwd: folder, env: { ...workspace.env, ...env } })

      const calls = await onCopy(async (folder) => {
        const count = diskFault(join(folder, 'out'), 'count', join(folder, 'calls'))
        expect((await command(folder, REDO, count)).code).toBe(0)
        expect((await shardPaths(join(folder, 'out'))).filter((path) => former.has(path))).toEqual([])
        return (await readFile(join(folder, 'calls'), 'utf8')).split('\n')
      })
      const faults = sampledCalls(calls, ONE).flatMap((number) => {
        const call = calls[number - 1]!
        const isFlush = /^(?:sync|datasync) (?!credentials)/.test(call)
        return OWN_WORK.test(call) ? [{ fault: `${isFlush ? 'power' : 'kill'}:${number}`, call }] : []
      })
      expect(faults.length).toBeGreaterThan(8)
      await concurrently(some(faults, 1), ({ fault, call }) =>
        onCopy(async (folder) => {
          const about = `${fault} ${call}`
          const output = join(folder, 'out')
          const ended = await command(folder, REDO, diskFault(output, fault, join(folder, 'calls')))
          if (ended.signal === 'SIGKILL') figures.kills++
          else expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
          const files = await shardHashes(output)
          for (const [path, hash] of await listed(output))
            expect(files.get(path), `${about}: ${path}`).toBe(hash)
          // Between the names of new shards and the removal of old ones, rows may be there twice, never not at all.
          expect(missingRows(rows, await rowsOf(output)), about).toBe(0)

          const again = await command(folder, ['run', 'pipeline.yaml'])
          expect(again.code, `${about}\n${again.stderr}`).toBe(0)
          figures.exports++
          expect(await rowsOf(output), about).toEqual(rows)
          const verified = await command(folder, ['verify', 'pipeline.yaml', '--complete', '--json'])
          expect(JSON.parse(verified.stdout), about).toMatchObject({ ok: true, complete: true })
          // A path that is still there holds what it always held.
          for (const [path, hash] of await shardHashes(output))
            if (files.has(path)) expect(hash, `${about}: ${path}`).toBe(files.get(path))
        }),
      )
    })
  },
)
