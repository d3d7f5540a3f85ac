import { setImmediate as settled } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FolderQueue } from '../../src/load/folder-queue.ts'

type Batch = { readonly items: readonly string[]; end(error?: Error): void }

/** Turns whose work ends when it is told to. */
class Bench {
  /** What was begun, in order. */
  readonly begun: Batch[] = []
  /** What is being done. */
  readonly underway: Batch[] = []
  /** How each item ended, in the order in which they did. */
  readonly ended = new Map<string, string>()
  readonly turns = new FolderQueue<string>(
    (items) =>
      new Promise((resolve, reject) => {
        const batch: Batch = {
          items,
          end: (error) => {
            this.underway.splice(this.underway.indexOf(batch), 1)
            if (error === undefined) resolve()
            else reject(error)
          },
        }
        this.begun.push(batch)
        this.underway.push(batch)
      }),
  )

  add(item: string, ...folders: string[]): void {
    this.turns.add(new Set(folders), item).then(
      () => this.ended.set(item, 'done'),
      (error: Error) => this.ended.set(item, error.message),
    )
  }

  /** Ends what an item is done in, and waits until whatever follows has begun. */
  async end(item: string, error?: Error): Promise<void> {
    const batch = this.underway.find(({ items }) => items.includes(item))
    if (batch === undefined) throw new Error(`${item} is not being done`)
    batch.end(error)
    await settled()
  }

  get atWork(): readonly (readonly string[])[] {
    return this.underway.map(({ items }) => items)
  }
}

describe('work on folders', () => {
  it('that share none is done side by side', async () => {
    const bench = new Bench()
    bench.add('one', 'a', 'b')
    bench.add('two', 'c')
    bench.add('three')
    bench.add('four')
    await settled()
    expect(bench.atWork).toEqual([['one'], ['two'], ['three'], ['four']])
  })

  it('that share one is done in the order in which it came', async () => {
    const bench = new Bench()
    bench.add('one', 'a')
    bench.add('two', 'a', 'b')
    bench.add('three', 'b')
    await settled()
    expect(bench.atWork).toEqual([['one']])
    await bench.end('one')
    // The third waits for the second, which waited for the first, and is done together with it.
    expect(bench.atWork).toEqual([['two', 'three']])
    await bench.end('two')
    expect([...bench.ended]).toEqual([
      ['one', 'done'],
      ['two', 'done'],
      ['three', 'done'],
    ])
  })

  it('that waits is done together, and what comes while that is being done waits anew', async () => {
    const bench = new Bench()
    bench.add('one', 'a')
    await settled()
    for (const item of ['two', 'three', 'four']) bench.add(item, 'a')
    await bench.end('one')
    expect(bench.atWork).toEqual([['two', 'three', 'four']])
    for (const item of ['five', 'six']) bench.add(item, 'a')
    await settled()
    expect(bench.atWork).toEqual([['two', 'three', 'four']])
    await bench.end('two')
    expect(bench.atWork).toEqual([['five', 'six']])
  })

  it('does not go with what waits where something else has come behind that, or where a folder is missing', async () => {
    const bench = new Bench()
    bench.add('one', 'a', 'b')
    await settled()
    bench.add('both', 'a', 'b')
    bench.add('more', 'b', 'c')
    bench.add('behind', 'b')
    bench.add('beside', 'a')
    await bench.end('one')
    expect(bench.atWork).toEqual([['both', 'beside']])
    await bench.end('both')
    expect(bench.atWork).toEqual([['more', 'behind']])
  })

  it('fails with what it comes behind, while other folders go on', async () => {
    const bench = new Bench()
    bench.add('first', 'a')
    bench.add('other', 'b')
    await settled()
    bench.add('waiting', 'a', 'b')
    bench.add('joined', 'a')
    await bench.end('first', new Error('the disk is full'))
    await bench.end('other')
    bench.add('late', 'a')
    bench.add('free', 'c')
    // It came behind what came behind the failure.
    bench.add('beyond', 'b')
    await settled()
    expect(bench.begun.map(({ items }) => items)).toEqual([['first'], ['other'], ['free']])
    for (const item of ['first', 'waiting', 'joined', 'late', 'beyond'])
      expect(bench.ended.get(item)).toBe('the disk is full')
    await bench.end('free')
    expect([bench.ended.get('other'), bench.ended.get('free')]).toEqual(['done', 'done'])
  })

  it('tells which folders are taken, and waits for all of it, failed or not', async () => {
    const bench = new Bench()
    bench.add('one', 'a')
    bench.add('two', 'b')
    bench.add('three', 'a', 'c')
    expect(['a', 'b', 'c', 'd'].map((folder) => bench.turns.isBusy(folder))).toEqual([
      true,
      true,
      true,
      false,
    ])
    let isSettled = false
    void bench.turns.settled().then(() => (isSettled = true))
    await settled()
    await bench.end('two')
    expect(bench.turns.isBusy('b')).toBe(false)
    await bench.end('one')
    expect(bench.turns.isBusy('a')).toBe(true)
    expect(isSettled).toBe(false)
    await bench.end('three', new Error('the disk is full'))
    expect(isSettled).toBe(true)
  })

  it('is done once, in order and as soon as it may be, however it comes and ends', async () => {
    const folders = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 })
    const step = fc.oneof(
      fc.record({ add: folders }),
      fc.record({ end: fc.nat(), fails: fc.integer({ min: 0, max: 9 }).map((one) => one === 0) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const bench = new Bench()
        const items: { readonly item: string; readonly folders: readonly string[] }[] = []
        const end = async (which: number, fails: boolean): Promise<void> => {
          const batch = bench.underway[which % bench.underway.length]
          await bench.end(batch!.items[0]!, fails ? new Error('failed') : undefined)
          expectOrder(items, bench)
        }
        for (const step of steps) {
          if ('add' in step) {
            items.push({ item: String(items.length), folders: step.add })
            bench.add(items.at(-1)!.item, ...step.add)
            await settled()
            expectOrder(items, bench)
          } else if (bench.underway.length > 0) await end(step.end, step.fails)
        }
        while (bench.underway.length > 0) await end(0, false)
        expect(bench.ended.size).toBe(items.length)
        const worked = bench.begun.flatMap(({ items }) => items)
        expect(new Set(worked).size).toBe(worked.length)
        for (const { item } of items) if (bench.ended.get(item) === 'done') expect(worked).toContain(item)
      }),
      { numRuns: 200 },
    )
  })
})

/** Of any two that share a folder the first is done, or begun together with the second, before that begins. */
function expectOrder(
  items: readonly { readonly item: string; readonly folders: readonly string[] }[],
  { begun, ended }: Bench,
): void {
  const batchOf = new Map(begun.flatMap((batch, at) => batch.items.map((item, place) => [item, [at, place]])))
  for (const [index, { item, folders }] of items.entries()) {
    const before = items.slice(0, index).filter((other) => other.folders.some((one) => folders.includes(one)))
    const [at, place] = batchOf.get(item) ?? []
    const isFree = before.every((other) => ended.get(other.item) === 'done')
    if (at === undefined) {
      expect(isFree, `${item} waits for nothing`).toBe(false)
      const hasFailed = before.some((other) => ![undefined, 'done'].includes(ended.get(other.item)))
      if (hasFailed) expect(ended.get(item), `${item} comes behind a failure`).toBe('failed')
      continue
    }
    for (const other of before) {
      const [otherAt, otherPlace] = batchOf.get(other.item) ?? []
      const isTogether = otherAt === at && otherPlace! < place!
      expect(isTogether || ended.get(other.item) === 'done', `${item} and ${other.item}`).toBe(true)
    }
  }
}
