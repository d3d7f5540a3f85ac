import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/index.ts'
import { openSettledCheckpoint, rollBack } from '../../src/run/recover.ts'
import {
  type CheckpointState,
  type Line,
  openCheckpoint,
  readCheckpoint,
  rewriteCheckpoint,
} from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { type TemporaryStore, temporaryStore } from '../disk/temporary-store.ts'
import { HEADER, seal, someJournal, writeCheckpoint } from './lines.ts'

async function stateOf({ store }: TemporaryStore): Promise<CheckpointState> {
  const state = await readCheckpoint(store)
  if (state === null) throw new Error('no checkpoint')
  return state
}

async function linesOf({ store }: TemporaryStore): Promise<readonly Line[]> {
  const lines: Line[] = []
  await rewriteCheckpoint(store, (line) => {
    lines.push(line)
    return line
  })
  return lines
}

/** What a line says about one partition; null: nothing. */
function partitionOf(line: Line): string | null {
  if (line.kind === 'seal') return line.page?.partition ?? null
  return 'partition' in line ? line.partition : null
}

describe('rolling back', () => {
  it('cuts the chains that lost a page before it, and leaves everything else as it is', async () => {
    const losses = fc.array(fc.nat({ max: 20 }), { minLength: 2, maxLength: 2 })
    await fc.assert(
      fc.asyncProperty(someJournal, losses, async (lines, [first, second]) => {
        const temporary = temporaryStore()
        await writeCheckpoint(temporary.store, lines)
        const before = await stateOf(temporary)
        const intact = new Map<number, number>()
        for (const [index, { shard, pages }] of [...before.openShards.values()].entries()) {
          if (pages.length === 0) continue
          const lost = pages[((index === 0 ? first : second) ?? 0) % pages.length]
          // Of an encoded generation either all the pages are intact or none.
          const isEncoded = before.openShards
            .get(shard)
            ?.chunks.some((c) => c.generation === lost?.generation)
          const at = pages.findIndex((page) =>
            isEncoded ? page.generation === lost?.generation : page === lost,
          )
          intact.set(shard, at)
        }
        const given = await rollBack(temporary.store, before, intact)
        const after = await stateOf(temporary)
        const left = await linesOf(temporary)

        const broken = new Set<string>()
        for (const [shard, at] of intact) {
          const [was, is] = [before.openShards.get(shard), after.openShards.get(shard)]
          const lost = was?.pages.slice(at) ?? []
          for (const { partition } of lost) broken.add(partition)
          expect(is?.pages).toEqual(was?.pages.slice(0, at))
          expect(is?.chunks).toEqual(was?.chunks.filter((c) => c.generation < (lost[0]?.generation ?? 0)))
        }
        expect(after.shards).toEqual(before.shards)
        // What they sent they sent.
        expect(after.runs).toEqual(before.runs)
        expect(after.nextShard).toBe(before.nextShard)
        expect([...after.partsOf]).toEqual([...before.partsOf])
        for (const key of new Set(lines.map(partitionOf))) {
          if (key === null) continue
          const [was, is] = [lines, left].map((all) => all.filter((line) => partitionOf(line) === key))
          if (broken.has(key)) expect(is).toEqual(was?.slice(0, is?.length))
          else expect(is).toEqual(was)
          if (broken.has(key)) expect(after.partitions.get(key)?.state ?? 'partial').not.toBe('done')
        }
        const pages = (all: readonly Line[]) => all.filter((line) => line.kind === 'page').length
        expect(given).toBe(pages(lines) - pages(left))
        expect(given > 0).toBe(broken.size > 0)
      }),
      { numRuns: 30 },
    )
  })

  it('gives up what came after a lost page of its chain: empty pages, failures, the end', async () => {
    const temporary = temporaryStore()
    const page = (partition: string, next: string | null, end: number | null): Line => ({
      kind: 'page',
      partition,
      next,
      rows: end === null ? 0 : 1,
      requests: 1,
      ...(end === null ? {} : { shard: 0, log: { generation: 0, end } }),
    })
    const kept: Line[] = [
      HEADER,
      { kind: 'open', shard: 0, folder: 'credentials', part: 0 },
      page('domain.a.com/all', 'a1', 8),
      page('domain.b.com/all', 'b1', 16),
      { kind: 'restart', partition: 'domain.a.com/all', since: { at: 5, ids: [1] } },
    ]
    const lost: Line[] = [
      page('domain.a.com/all', 'a2', 24),
      page('domain.a.com/all', 'a3', null),
      {
        kind: 'failed',
        partition: 'domain.a.com/all',
        requests: 3,
        error: { kind: 'transient', message: 'x' },
      },
      { kind: 'restart', partition: 'domain.a.com/all', since: null },
      page('domain.a.com/all', null, null),
    ]
    const others: Line[] = [page('domain.b.com/all', null, null), page('domain.c.com/all', 'c1', null)]
    await writeCheckpoint(temporary.store, [...kept, ...lost, ...others])
    expect(await rollBack(temporary.store, await stateOf(temporary), new Map([[0, 2]]))).toBe(3)
    expect(await linesOf(temporary)).toEqual([...kept, ...others])
    const state = await stateOf(temporary)
    expect(state.partitions.get('domain.a.com/all')).toMatchObject({
      state: 'partial',
      next: null,
      pages: 1,
      since: { at: 5, ids: [1] },
    })
    expect(state.partitions.get('domain.b.com/all')).toMatchObject({ state: 'done', rows: 1 })
    const checkpoint = await openCheckpoint(temporary.store, HEADER, () => {})
    await checkpoint.append([page('domain.a.com/all', null, 24)])
    await checkpoint.close()
    expect((await stateOf(temporary)).openShards.get(0)?.pages).toHaveLength(3)
  })
})

describe('finished shards', () => {
  const PATH = 'credentials/part-00000.csv'

  async function withSeal(): Promise<Store> {
    const { store } = temporaryStore()
    await writeCheckpoint(store, [HEADER, seal(3, PATH, { bytes: 10 })])
    return store
  }

  async function settle(store: Store): Promise<void> {
    const checkpoint = await openSettledCheckpoint(
      store,
      HEADER,
      () => {},
      () => {},
    )
    await checkpoint.close()
  }

  it('get their names where a crash came before', async () => {
    const store = await withSeal()
    await store.writeWhole('_state/open/3.part', ['0123456789'])
    for (let time = 0; time < 2; time++) {
      await settle(store)
      expect(await store.size(PATH)).toBe(10)
      expect(await store.size('_state/open/3.part')).toBeNull()
    }
  })

  it.each([
    ['is missing', null, null],
    ['is short', '012345678', null],
    ['is too long', '0123456789+', null],
    ['is missing, and was never whole', null, '012345678'],
    ['is short, whatever stands among the open ones', '012345678', '0123456789'],
  ])('are refused when one %s, and stay as they are', async (_, final, open) => {
    const store = await withSeal()
    if (final !== null) await store.writeWhole(PATH, [final])
    if (open !== null) await store.writeWhole('_state/open/3.part', [open])
    await expect(settle(store)).rejects.toEqual(anError('damaged', PATH))
    expect(await store.size(PATH)).toBe(final?.length ?? null)
    expect(await store.size('_state/open/3.part')).toBe(open?.length ?? null)
  })
})
