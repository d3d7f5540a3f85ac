import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { type Pipeline, readPipeline, runPipeline, verifyDataSet } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { readStatus } from '../support/rooms.ts'
import { startSandbox } from '../support/sandbox.ts'
import { cases, seedOf } from '../support/thorough.ts'
import { PIPELINE, workspaceFor } from '../support/workspace.ts'
import { type Edit, edited, edits } from './fuzz-edits.ts'
import { rowsOf } from './rows.ts'
import { diskFault, RECORD_OF_A_START, runCli } from './support.ts'

const SEED = seedOf(20260303)
const WORDS = ['{}\n', '"rows":', '"crc":"00000000"', '9', '-1', 'null', '\u0000']

type Files = ReadonlyMap<string, Buffer>

const EXPORTS = [
  { partition_by: 'none', compression: 'none', pageSize: 10, maxRequests: 7, killAt: 90 },
  { partition_by: ['query', 'window'], compression: 'gzip', pageSize: 4, maxRequests: 7, killAt: 140 },
]

describe.each(EXPORTS)(
  'damage to the state of an export by $partition_by',
  ({ partition_by, compression, pageSize, maxRequests, killAt }) => {
    /** Of a run that ended, and of one that was killed: its commits are not in the checkpoint. */
    let states: readonly Files[]
    let rows: ReadonlyMap<string, number>
    let pipeline: Pipeline
    let output: string
    let exportAll: (pipeline: Pipeline) => ReturnType<typeof runPipeline>

    beforeAll(async () => {
      const domains = ['scatterholt.com', 'quillmere.net']
      const windows = { from: '2024-01-01', until: '2024-07-01', every: 'month' }
      const extract = { domains, windows, page_size: pageSize, concurrency: 2 }
      const load = { format: 'csv', compression, partition_by, shard_rows: 30 }
      const sandbox = await startSandbox({ records: 90, seed: 'network', invalidRate: 0.03 })
      const { folder, env, ...here } = await workspaceFor(sandbox, { extract, load })
      output = here.output
      pipeline = await readPipeline(PIPELINE, { env, cwd: folder })
      exportAll = async (pipeline) => runPipeline(pipeline, await runOptions(pipeline, { env }))
      expect((await exportAll(pipeline)).status).toBe('complete')
      rows = await rowsOf(output)
      expect(rows.size).toBeGreaterThan(50)
      await rm(output, { recursive: true, force: true })
      const half = await exportAll({ ...pipeline, extract: { ...pipeline.extract, maxRequests } })
      expect(half.status).toBe('budget')
      const ended = await contentOf(output)
      expect([...ended.keys()].join()).toMatch(/_state\/log\/\d{16}/)
      await rm(output, { recursive: true, force: true })
      const fault = diskFault(output, `kill:${killAt}`)
      // One chain at a time, so that the call with this number is always the same.
      const args = ['run', PIPELINE, '--concurrency', '1']
      const { signal } = await runCli({ args, cwd: folder, env: { ...env, ...fault } })
      expect(signal).toBe('SIGKILL')
      const killed = await contentOf(output)
      const log = [...killed].filter(([path]) => path.startsWith('_state/log/')).join()
      expect(log.match(/"parts"/g)!.length).toBeGreaterThan(5)
      states = [ended, killed]
    })

    test('is healed without a row lost or doubled, or refused with every file unchanged', async () => {
      const counts = { healed: 0, refused: 0 }
      const damages = states.map((files) => {
        const paths = [...files.keys()].filter((path) => path.startsWith('_') && path !== '_SUCCESS')
        return fc.record({
          files: fc.constant(files),
          // The checkpoint matters most.
          path: fc.oneof(fc.constant('_state/checkpoint.jsonl'), fc.constantFrom(...paths)),
          list: fc.option(edits(WORDS), { nil: 'gone' as const, freq: 8 }),
        })
      })
      await fc.assert(
        fc.asyncProperty(fc.oneof(...damages), async ({ files, path, list }) => {
          const before = damaged(files, path, list)
          await restore(output, before)
          try {
            const { status } = await exportAll(pipeline)
            expect(status).toBe('complete')
            expect(await rowsOf(output)).toEqual(rows)
            counts.healed++
          } catch (error) {
            if (!isExportError(error, 'damaged', 'config')) throw error
            expect(error.next).not.toBe('')
            expect(besideRecord(await contentOf(output))).toEqual(besideRecord(before))
            counts.refused++
          }
        }),
        { seed: SEED, numRuns: cases(100, 10) },
      )
      // Both outcomes occur.
      expect(Math.min(counts.healed, counts.refused)).toBeGreaterThan(0)
    })

    test('never makes status or verify fail with an unexpected error', async () => {
      const paths = states.flatMap((files) => [...files.keys()].map((path) => ({ files, path })))
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...paths), edits(WORDS), async ({ files, path }, list) => {
          const before = damaged(files, path, list)
          await restore(output, before)
          await readStatus(pipeline).catch(onlyExpected)
          const found = await verifyDataSet(pipeline)
          const isListed = !path.startsWith('_') && files.get('_manifest.json')?.includes(path) === true
          if (isListed && !before.get(path)?.equals(files.get(path)!)) expect(found.ok).toBe(false)
          expect(textsOf(await contentOf(output))).toEqual(textsOf(before))
        }),
        { seed: SEED, numRuns: cases(80, 4) },
      )
    })
  },
)

function onlyExpected(error: unknown): void {
  if (!isExportError(error, 'damaged', 'config')) throw error
}

function damaged(files: Files, path: string, list: readonly Edit[] | 'gone'): Files {
  const changed = new Map(files)
  if (list === 'gone') changed.delete(path)
  else changed.set(path, edited(files.get(path)!, list))
  return changed
}

/** Every file but the lock files and temporary files of processes, which come and go with them. */
async function contentOf(root: string): Promise<Files> {
  const files = new Map<string, Buffer>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || /_state[/\\](?:lock|open)\./.test(join(entry.parentPath, entry.name))) continue
    const path = join(entry.parentPath, entry.name)
    files.set(relative(root, path), await readFile(path))
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Strings with a character a byte: Vitest compares buffers as lists of numbers. */
function textsOf(files: Files): ReadonlyMap<string, string> {
  return new Map([...files].map(([path, bytes]) => [path, bytes.toString('latin1')]))
}

function besideRecord(files: Files): ReadonlyMap<string, string> {
  const texts = new Map(textsOf(files))
  for (const path of RECORD_OF_A_START) texts.delete(path)
  return texts
}

async function restore(root: string, files: Files): Promise<void> {
  await rm(root, { recursive: true, force: true })
  for (const [path, bytes] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), bytes)
  }
}
