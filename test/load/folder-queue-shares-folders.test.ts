import { setImmediate as settled } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FolderQueue } from '../../src/load/folder-queue.ts'

type Batch = { readonly items: readonly string[]; end(error?: Error): void }

/** A queue whose batches end when the test ends them. */
class Recorder {
  /** The batches that were begun, in order. */
  readonly begun: Batch[] = []
  /** The batches that are running. */
  readonly underway: Batch[] = []
  /** The outcome of each item, in the order in which they ended. */
  readonly ended = new Map<string, string>()
  readonly queue = new FolderQueue<string>(
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
    this.queue.add(new Set(folders), item).then(
      () => this.ended.set(item, 'done'),
      (error: Error) => this.ended.set(item, error.message),
    )
  }

  /** Ends the batch of an item, and waits until the next batches have begun. */
  async end(item: string, error?: Error): Promise<void> {
    const batch = this.underway.find(({ items }) => items.includes(item))
    if (batch === undefined) throw new Error(`${item} is not running`)
    batch.end(error)
    await settled()
  }

  get running(): readonly (readonly string[])[] {
    return this.underway.map(({ items }) => items)
  }
}

describe('work on folders', () => {
  it('with no folder in common runs concurrently', async () => {
    const recorder = new Recorder()
    recorder.add('one', 'a', 'b')
    recorder.add('two', 'c')
    recorder.add('three')
    recorder.add('four')
    await settled()
    expect(recorder.running).toEqual([['one'], ['two'], ['three'], ['four']])
  })

  it('with a common folder runs in the order of arrival', async () => {
    const recorder = new Recorder()
    recorder.add('one', 'a')
    recorder.add('two', 'a', 'b')
    recorder.add('three', 'b')
    await settled()
    expect(recorder.running).toEqual([['one']])
    await recorder.end('one')
    // The third waits for the second, which waited for the first, and runs in its batch.
    expect(recorder.running).toEqual([['two', 'three']])
    await recorder.end('two')
    expect([...recorder.ended]).toEqual([
      ['one', 'done'],
      ['two', 'done'],
      ['three', 'done'],
    ])
  })

  it('that waits runs in one batch, and work that arrives during the batch waits for the next', async () => {
    const recorder = new Recorder()
    recorder.add('one', 'a')
    await settled()
    for (const item of ['two', 'three', 'four']) recorder.add(item, 'a')
    await recorder.end('one')
    expect(recorder.running).toEqual([['two', 'three', 'four']])
    for (const item of ['five', 'six']) recorder.add(item, 'a')
    await settled()
    expect(recorder.running).toEqual([['two', 'three', 'four']])
    await recorder.end('two')
    expect(recorder.running).toEqual([['five', 'six']])
  })

  it('does not join a waiting batch if other work came after that, or if the batch lacks a folder', async () => {
    const recorder = new Recorder()
    recorder.add('one', 'a', 'b')
    await settled()
    recorder.add('both', 'a', 'b')
    recorder.add('more', 'b', 'c')
    recorder.add('behind', 'b')
    recorder.add('beside', 'a')
    await recorder.end('one')
    expect(recorder.running).toEqual([['both', 'beside']])
    await recorder.end('both')
    expect(recorder.running).toEqual([['more', 'behind']])
  })

  it('fails with the work before it, while other folders continue', async () => {
    const recorder = new Recorder()
    recorder.add('first', 'a')
    recorder.add('other', 'b')
    await settled()
    recorder.add('waiting', 'a', 'b')
    recorder.add('joined', 'a')
    await recorder.end('first', new Error('the disk is full'))
    await recorder.end('other')
    recorder.add('late', 'a')
    recorder.add('free', 'c')
    // It waits for work that waits for the failed work.
    recorder.add('beyond', 'b')
    await settled()
    expect(recorder.begun.map(({ items }) => items)).toEqual([['first'], ['other'], ['free']])
    for (const item of ['first', 'waiting', 'joined', 'late', 'beyond'])
      expect(recorder.ended.get(item)).toBe('the disk is full')
    await recorder.end('free')
    expect([recorder.ended.get('other'), recorder.ended.get('free')]).toEqual(['done', 'done'])
  })

  it('reports the folders in use, and can be awaited as a whole, failed or not', async () => {
    const recorder = new Recorder()
    recorder.add('one', 'a')
    recorder.add('two', 'b')
    recorder.add('three', 'a', 'c')
    expect(['a', 'b', 'c', 'd'].map((folder) => recorder.queue.isBusy(folder))).toEqual([
      true,
      true,
      true,
      false,
    ])
    let isSettled = false
    void recorder.queue.settled().then(() => (isSettled = true))
    await settled()
    await recorder.end('two')
    expect(recorder.queue.isBusy('b')).toBe(false)
    await recorder.end('one')
    expect(recorder.queue.isBusy('a')).toBe(true)
    expect(isSettled).toBe(false)
    await recorder.end('three', new Error('the disk is full'))
    expect(isSettled).toBe(true)
  })

  it('runs once, in order and as soon as possible, whatever the order of arrivals and ends', async () => {
    const folders = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 })
    const step = fc.oneof(
      fc.record({ add: folders }),
      fc.record({ end: fc.nat(), fails: fc.integer({ min: 0, max: 9 }).map((one) => one === 0) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const recorder = new Recorder()
        const items: { readonly item: string; readonly folders: readonly string[] }[] = []
        const end = async (which: number, fails: boolean): Promise<void> => {
          const batch = recorder.underway[which % recorder.underway.length]
          await recorder.end(batch!.items[0]!, fails ? new Error('failed') : undefined)
          expectOrder(items, recorder)
        }
        for (const step of steps) {
          if ('add' in step) {
            items.push({ item: String(items.length), folders: step.add })
            recorder.add(items.at(-1)!.item, ...step.add)
            await settled()
            expectOrder(items, recorder)
          } else if (recorder.underway.length > 0) await end(step.end, step.fails)
        }
        while (recorder.underway.length > 0) await end(0, false)
        expect(recorder.ended.size).toBe(items.length)
        const worked = recorder.begun.flatMap(({ items }) => items)
        expect(new Set(worked).size).toBe(worked.length)
        for (const { item } of items) if (recorder.ended.get(item) === 'done') expect(worked).toContain(item)
      }),
      { numRuns: 200 },
    )
  })
})

/** Of two items with a common folder the first is done before the second begins, or is in the same batch. */
function expectOrder(
  items: readonly { readonly item: string; readonly folders: readonly string[] }[],
  { begun, ended }: Recorder,
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
