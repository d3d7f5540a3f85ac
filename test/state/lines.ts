import fc from 'fast-check'
import type { Store } from '../../src/core/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  type HeaderLine,
  type Line,
  type SealLine,
} from '../../src/state/index.ts'
import { JOURNAL_START, openJournal } from '../../src/state/journal.ts'

export const HEADER: HeaderLine = {
  kind: 'header',
  version: 1,
  pipeline: 'acme',
  created_at: '2024-07-01T00:00:00.000Z',
  settings: { 'extract.order': 'asc' },
}

export function seal(shard: number, path: string, over: Partial<SealLine> = {}): SealLine {
  return {
    kind: 'seal',
    shard,
    path,
    rows: 1,
    bytes: 10,
    sha256: 'ab'.repeat(32),
    partitions: ['domain.acme.com/all'],
    imported_at: { min: 1, max: 2 },
    ...over,
  }
}

/** Writes a journal from its beginning. @returns where each line ends */
export async function writeJournal(store: Store, path: string, lines: readonly object[]): Promise<number[]> {
  const journal = await openJournal(store, path, JOURNAL_START)
  const ends: number[] = []
  for (const line of lines) {
    await journal.append([line])
    ends.push(journal.size)
  }
  await journal.close()
  return ends
}

export async function writeCheckpoint(store: Store, lines: readonly Line[]): Promise<void> {
  const journal = await openJournal(store, CHECKPOINT_PATH, JOURNAL_START)
  await journal.append(lines)
  await journal.close()
}

/** A state as plain values, less what a compaction may change: how many lines it took, and in which order. */
export function plain(state: CheckpointState) {
  const partitions = [...state.partitions].map(([key, { seen, ...record }]) => ({
    key,
    ...record,
    seen: seen?.size ?? 0,
  }))
  return structuredClone({
    header: state.header,
    partitions: partitions.sort((a, b) => (a.key < b.key ? -1 : 1)),
    shards: [...state.shards],
    openShards: [...state.openShards].sort(([a], [b]) => a - b),
    partsOf: [...state.partsOf].sort(([a], [b]) => (a < b ? -1 : 1)),
    nextShard: state.nextShard,
    unknownFields: [...state.unknownFields].sort(([a], [b]) => (a < b ? -1 : 1)),
    runs: state.runs,
  })
}

type Step =
  | { readonly do: 'page'; readonly chain: number; readonly rows: number; readonly last: boolean }
  | { readonly do: 'encode' | 'seal' | 'fail' | 'restart' | 'run' | 'end'; readonly chain: number }

const CHAINS = 5
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('page' as const),
      chain: fc.nat({ max: CHAINS - 1 }),
      rows: fc.nat({ max: 4 }),
      last: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'encode' as const,
        'seal' as const,
        'fail' as const,
        'restart' as const,
        'run' as const,
        'end' as const,
      ),
      chain: fc.nat({ max: CHAINS - 1 }),
    }),
  },
)

/**
 * Journals as a run could write them: a few chains in two folders, with pages in open and in finished shards,
 * failures, restarts and runs. Chains 0 to 2 share the first folder, the others the second.
 */
export const someJournal: fc.Arbitrary<readonly Line[]> = fc.array(step, { maxLength: 60 }).map(linesOf)

function linesOf(steps: readonly Step[]): readonly Line[] {
  const lines: Line[] = [HEADER]
  const done = new Set<number>()
  const open = new Map<
    string,
    { shard: number; part: number; generation: number; end: number; rows: number }
  >()
  const parts = new Map<string, number>()
  let shards = 0
  let runs = 0
  let pages = 0
  const folderOf = (chain: number): string => `credentials/folder=${chain < 3 ? 'a' : 'b'}`
  const keyOf = (chain: number): string => `domain.d${chain % 3}.com/window-${chain}`
  for (const { do: what, chain, ...more } of steps) {
    const folder = folderOf(chain)
    const partition = keyOf(chain)
    const shard = open.get(folder)
    switch (what) {
      case 'page': {
        if (done.has(chain)) break
        const { rows, last } = more as { rows: number; last: boolean }
        if (last) done.add(chain)
        const number = pages++
        const facts = {
          partition,
          next: last ? null : `cursor-${number}`,
          rows,
          requests: 1 + (number % 3),
          ...(rows === 0 ? {} : { imported_at: { min: number, max: number + rows } }),
          ...(number % 2 === 0 ? { position: { at: number, ids: [number] } } : {}),
          ...(number % 5 === 0 ? { quarantine: { end: number * 10, items: 2 } } : {}),
          ...(number % 3 === 0 ? { repeated: number } : {}),
          ...(number % 3 === 1 && !last ? { ids: { file: number % 2, end: number, crc: number } } : {}),
          ...(number % 4 === 0 ? { unknown_fields: { [`field-${number % 3}`]: rows + 1 } } : {}),
        }
        if (rows === 0) lines.push({ kind: 'page', ...facts })
        else {
          const into = shard ?? {
            shard: shards++,
            part: parts.get(folder) ?? 0,
            generation: 0,
            end: 0,
            rows: 0,
          }
          if (shard === undefined) {
            parts.set(folder, into.part + 1)
            open.set(folder, into)
            lines.push({ kind: 'open', shard: into.shard, folder, part: into.part })
          }
          into.end += rows * 8
          into.rows += rows
          const log = { generation: into.generation, end: into.end }
          lines.push({ kind: 'page', ...facts, shard: into.shard, log })
        }
        break
      }
      case 'encode': {
        if (shard === undefined || shard.end === 0) break
        const { generation } = shard
        lines.push({
          kind: 'chunk',
          shard: shard.shard,
          generation,
          offset: generation * 100,
          bytes: 100,
          crc: 7,
          rows: shard.rows,
          meta: { generation },
        })
        shard.generation++
        shard.end = 0
        break
      }
      case 'seal': {
        if (shard === undefined) break
        const path = `${folder}/part-${String(shard.part).padStart(5, '0')}.csv`
        open.delete(folder)
        if (done.has(chain)) lines.push(seal(shard.shard, path, { rows: shard.rows }))
        else {
          done.add(chain)
          const page = { partition, next: null, rows: 3, requests: 1, unknown_fields: { sealed: 1 } }
          lines.push(seal(shard.shard, path, { rows: shard.rows + 3, page }))
        }
        break
      }
      case 'fail':
        if (!done.has(chain)) {
          const error = { kind: 'transient', message: 'no answer' }
          lines.push({ kind: 'failed', partition, requests: 2, error })
        }
        break
      case 'restart':
        if (!done.has(chain)) lines.push({ kind: 'restart', partition, since: { at: pages, ids: [1, 2] } })
        break
      case 'run':
        lines.push({
          kind: 'run',
          run: `run-${runs++}`,
          started_at: '2024-07-01T00:00:00.000Z',
          version: '1.0.0',
        })
        break
      case 'end':
        if (runs > 0) {
          const run = `run-${runs - 1}`
          const finished_at = '2024-07-01T01:00:00.000Z'
          lines.push({ kind: 'end', run, finished_at, status: 'complete', requests: 5, retries: 1 })
        }
        break
    }
  }
  return lines
}
