import { describe, expect, it, onTestFinished } from 'vitest'
import type { FencedStore, Log } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import {
  add,
  contentsOf,
  type MakeWorld,
  newOwner,
  nextOwner,
  textOf,
  type World,
  writeLog,
} from './world.ts'

const CHECKPOINT = '_state/checkpoint.jsonl'
const SHARD = 'credentials/a/part-00000.csv'
const PUBLIC = [CHECKPOINT, SHARD, '_manifest.json', '_new.json', 'credentials/a/part-00001.csv']

/** Every change that a former owner may try before it knows of the takeover. */
const LATE_CHANGES: readonly [
  name: string,
  change: (own: FencedStore, checkpoint: Log) => Promise<unknown>,
][] = [
  ['publishes a file', (own) => own.publish('_state/open/0.part', 'credentials/a/part-00001.csv')],
  ['replaces a file by a published one', (own) => own.publish('_state/open/0.part', SHARD)],
  ['moves a public file away', (own) => own.publish(SHARD, '_state/open/aside')],
  ['rewrites a public file', (own) => own.writeWhole('_manifest.json', ['late'])],
  ['writes a new public file', (own) => own.writeWhole('_new.json', ['late'])],
  ['writes a large file', (own) => own.writeWhole('_new.json', [Buffer.alloc(9 << 20)])],
  ['rewrites the checkpoint', (own) => own.writeWhole(CHECKPOINT, ['late'])],
  ['removes a public file', (own) => own.remove(SHARD)],
  ['removes a folder', (own) => own.removeFolder('credentials')],
  ['appends to a public log that it has open', (_, checkpoint) => add(checkpoint, 'late')],
  ['opens a public log to append', async (own) => add(await own.openLog(CHECKPOINT, 4), 'late')],
  ['checks that it is the owner', (own) => own.requireLock()],
  ['opens a public log anew', async (own) => add(await own.openLog(CHECKPOINT, 0), 'late')],
]

/** An owner at work: a public log and a private one are open, one file is published and another is not. */
async function ownerAtWork(world: World) {
  const id = newOwner()
  const own = await world.open().fenced('_state/open', id)
  const checkpoint = await own.openLog(CHECKPOINT, 0)
  await add(checkpoint, 'line')
  await writeLog(own, '_state/open/9.part', 'shard')
  await own.publish('_state/open/9.part', SHARD)
  await own.writeWhole('_manifest.json', ['manifest'])
  await writeLog(own, '_state/open/0.part', 'chunk ', 'by chunk')
  const rows = await own.openLog('_state/open/0.0.log', 0)
  await add(rows, 'rows')
  // In a bucket, a close is refused once another owner has taken over.
  onTestFinished(async () => {
    await Promise.allSettled([checkpoint.close(), rows.close()])
  })
  return { id, own, checkpoint, rows }
}

export function oneOwnerAtATime(make: MakeWorld): void {
  describe('an owner', () => {
    it('works in a private folder, and in public', async () => {
      const { open } = await make()
      const [a, b] = [
        await open().fenced('_state/open', newOwner()),
        await open().fenced('_state/open', newOwner()),
      ]
      await a.writeWhole('_state/open/0.part', ['of a'])
      await writeLog(b, '_state/open/0.part', 'of ', 'b')
      expect(await textOf(a, '_state/open/0.part')).toBe('of a')
      expect(await textOf(b, '_state/open/0.part')).toBe('of b')
      expect(await a.list('_state/open')).toEqual(['0.part'])
      expect(await open().list('_state/open')).toEqual([])
      await a.publish('_state/open/0.part', SHARD)
      await b.writeWhole('_manifest.json', ['b'])
      for (const store of [a, b, open()]) {
        expect(await textOf(store, SHARD)).toBe('of a')
        expect(await textOf(store, '_manifest.json')).toBe('b')
      }
    })

    it('is listed by its name while it is an owner', async () => {
      const { open, names } = await make()
      const id = newOwner()
      const own = await open().fenced('_state/open', id)
      expect(await open().list('_state')).toEqual([`open.${id}`])
      await own.requireLock()
      await own.release()
      expect(await open().list('_state')).toEqual([])
      expect(await names()).toEqual([])
    })

    it('changes, replaces, quarantines and removes public files', async () => {
      const { open, names } = await make()
      const own = await open().fenced('_state/open', newOwner())
      for (const text of ['one', 'two']) {
        await own.writeWhole('_manifest.json', [text])
        expect(await textOf(open(), '_manifest.json')).toBe(text)
        await writeLog(own, '_state/open/0.part', text)
        await own.publish('_state/open/0.part', SHARD)
        expect(await textOf(open(), SHARD)).toBe(text)
        expect(await textOf(own, SHARD)).toBe(text)
      }
      await own.publish(SHARD, '_state/open/aside')
      await own.publish('_state/open/aside', '_state/orphans/aside')
      expect(await textOf(open(), '_state/orphans/aside')).toBe('two')
      expect(await open().read(SHARD)).toBeNull()
      await own.remove('_manifest.json')
      await own.removeFolder('_state/orphans')
      await own.release()
      expect(await names()).toEqual([])
    })

    it('lets other readers see its public log grow', async () => {
      const world = await make()
      const { own, checkpoint } = await ownerAtWork(world)
      await add(checkpoint, ' by line')
      expect(await textOf(world.open(), CHECKPOINT)).toBe('line by line')
      await checkpoint.close()
      const again = await own.openLog(CHECKPOINT, 4)
      await add(again, '!')
      await again.close()
      expect(await textOf(world.open(), CHECKPOINT)).toBe('line!')
      await writeLog(own, '_state/open/checkpoint', 'a ', 'new one')
      await own.publish('_state/open/checkpoint', CHECKPOINT)
      expect(await textOf(world.open(), CHECKPOINT)).toBe('a new one')
    })
  })

  describe.each([
    ['is dead', false],
    ['lost its lease', true],
  ])('an owner that %s', (_, mayWrite) => {
    it('leaves everything to the next owner, who continues', async () => {
      const world = await make()
      const { own, checkpoint, rows, id } = await ownerAtWork(world)
      const next = await nextOwner(world, mayWrite, [CHECKPOINT])
      expect(await next.list('_state/open')).toEqual(['0.0.log', '0.part'])
      expect(await world.open().list('_state')).not.toContain(`open.${id}`)
      const log = await next.openLog('_state/open/0.0.log', 4)
      await add(log, ' and more')
      await log.close()
      const line = await next.openLog(CHECKPOINT, 4)
      await add(line, ' two')
      await line.close()
      await next.publish('_state/open/0.part', 'credentials/a/part-00001.csv')
      await next.publish('_state/open/0.0.log', '_state/orphans/rows')
      expect(await contentsOf(world.open(), [...PUBLIC, '_state/orphans/rows'])).toEqual({
        [CHECKPOINT]: 'line two',
        [SHARD]: 'shard',
        '_manifest.json': 'manifest',
        '_new.json': null,
        'credentials/a/part-00001.csv': 'chunk by chunk',
        '_state/orphans/rows': 'rows and more',
      })
      for (const log of [checkpoint, rows]) await log.close().catch(() => {})
      await own.release()
      expect(await next.list('_state/open')).toEqual([])
    })

    it('reports whether it left anything', async () => {
      const { open } = await make()
      const [idle, busy] = [newOwner(), newOwner()]
      await open().fenced('_state/open', idle)
      const working = await open().fenced('_state/open', busy)
      await working.writeWhole('_state/open/0.part', ['x'])
      const own = await open().fenced('_state/open', newOwner())
      expect(await own.takeOver(idle, mayWrite)).toBe(false)
      expect(await own.takeOver(busy, mayWrite)).toBe(true)
      await own.settle()
      expect(await textOf(own, '_state/open/0.part')).toBe('x')
    })

    it('has many successors, each of which crashes during the takeover', async () => {
      const world = await make()
      const { checkpoint, rows } = await ownerAtWork(world)
      for (const steps of [1, 2, 1]) {
        const id = newOwner()
        const own = await world.open().fenced('_state/open', id)
        for (const name of await own.list('_state')) {
          const before = /^open\.(.+)$/.exec(name)?.[1]
          if (before !== undefined && before !== id) await own.takeOver(before, mayWrite)
        }
        if (steps === 2) await own.settle()
      }
      const last = await nextOwner(world, mayWrite, [CHECKPOINT])
      expect(await contentsOf(last, ['_state/open/0.part', '_state/open/0.0.log', CHECKPOINT])).toEqual({
        '_state/open/0.part': 'chunk by chunk',
        '_state/open/0.0.log': 'rows',
        [CHECKPOINT]: 'line',
      })
      expect(await last.list('_state/open')).toEqual(['0.0.log', '0.part'])
      for (const log of [checkpoint, rows]) await log.close().catch(() => {})
    })
  })

  describe('an owner after a takeover', () => {
    it.each(LATE_CHANGES)('gets an error when it %s, and changes nothing', async (_, change) => {
      const world = await make()
      const { own, checkpoint, rows } = await ownerAtWork(world)
      await nextOwner(world, true, [CHECKPOINT])
      const before = await contentsOf(world.open(), PUBLIC)
      await expect(change(own, checkpoint)).rejects.toEqual(anError('locked'))
      expect(await contentsOf(world.open(), PUBLIC)).toEqual(before)
      for (const log of [checkpoint, rows]) await log.close().catch(() => {})
      expect(await contentsOf(world.open(), PUBLIC)).toEqual(before)
    })

    it('gets an error from the first step on, before the next owner has gathered anything', async () => {
      const world = await make()
      const { id, own, checkpoint, rows } = await ownerAtWork(world)
      const next = await world.open().fenced('_state/open', newOwner())
      await own.requireLock()
      await next.takeOver(id, true)
      const before = await contentsOf(world.open(), PUBLIC)
      await expect(own.requireLock()).rejects.toEqual(anError('locked'))
      await expect(own.remove(SHARD)).rejects.toEqual(anError('locked'))
      expect(await contentsOf(world.open(), PUBLIC)).toEqual(before)
      for (const log of [checkpoint, rows]) await log.close().catch(() => {})
    })

    it('has no effect through the files that it has open', async () => {
      const world = await make()
      const { own, checkpoint, rows } = await ownerAtWork(world)
      const next = await nextOwner(world, true, [CHECKPOINT])
      for (const log of [checkpoint, rows]) {
        await add(log, 'late').catch(() => {})
        await log.close().catch(() => {})
      }
      await own.writeWhole('_state/open/0.part', ['late']).catch(() => {})
      await own.remove('_state/open/0.0.log').catch(() => {})
      const files = ['_state/open/0.part', '_state/open/0.0.log', CHECKPOINT]
      expect(await contentsOf(next, files)).toEqual({
        '_state/open/0.part': 'chunk by chunk',
        '_state/open/0.0.log': 'rows',
        [CHECKPOINT]: 'line',
      })
      const [line, log] = [await next.openLog(CHECKPOINT, 4), await next.openLog('_state/open/0.0.log', 4)]
      await add(line, ' two')
      await add(log, ' and more')
      await Promise.all([line.close(), log.close()])
      expect(await textOf(world.open(), CHECKPOINT)).toBe('line two')
      expect(await textOf(next, '_state/open/0.0.log')).toBe('rows and more')
    })

    it('can leave without an effect on the next owner', async () => {
      const world = await make()
      const { own, checkpoint, rows } = await ownerAtWork(world)
      const next = await nextOwner(world, true, [CHECKPOINT])
      await own.release()
      for (const log of [checkpoint, rows]) await log.close().catch(() => {})
      await next.writeWhole('_manifest.json', ['next'])
      expect(await textOf(world.open(), '_manifest.json')).toBe('next')
      expect(await textOf(next, '_state/open/0.part')).toBe('chunk by chunk')
    })
  })

  describe('an owner that leaves', () => {
    it('leaves its files to the next owner', async () => {
      const world = await make()
      const { own, checkpoint, rows } = await ownerAtWork(world)
      await Promise.all([checkpoint.close(), rows.close()])
      await own.release()
      for (let round = 0; round < 3; round++) {
        const next = await nextOwner(world, false)
        expect(await next.list('_state/open')).toEqual(['0.0.log', '0.part'])
        expect(await textOf(next, '_state/open/0.part')).toBe('chunk by chunk')
        const log = await next.openLog('_state/open/0.0.log', 4 + round)
        await add(log, '+')
        await log.close()
        await next.release()
      }
      const last = await nextOwner(world, false)
      expect(await textOf(last, '_state/open/0.0.log')).toBe('rows+++')
      await last.publish('_state/open/0.part', 'credentials/a/part-00001.csv')
      await last.remove('_state/open/0.0.log')
      await last.release()
      expect(await world.open().list('_state')).toEqual(['checkpoint.jsonl'])
      expect(await textOf(world.open(), 'credentials/a/part-00001.csv')).toBe('chunk by chunk')
    })
  })

  describe('a file that is renewed', () => {
    it('is unchanged for its readers and its owner', async () => {
      const world = await make()
      const own = await world.open().fenced('_state/open', newOwner())
      await writeLog(own, CHECKPOINT, 'one ', 'two')
      for (let time = 0; time < 2; time++) {
        await own.replaceByCopy(CHECKPOINT)
        expect(await textOf(world.open(), CHECKPOINT)).toBe('one two')
        expect(await textOf(own, CHECKPOINT)).toBe('one two')
      }
      const log = await own.openLog(CHECKPOINT, 4)
      await add(log, 'three')
      await log.close()
      expect(await textOf(world.open(), CHECKPOINT)).toBe('one three')
    })
  })
}
