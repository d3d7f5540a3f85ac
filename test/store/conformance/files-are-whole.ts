import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { pieces } from '../../support/pieces.ts'
import { cases, some } from '../../support/thorough.ts'
import { type MakeWorld, nextOwner, streamed, textOf } from './world.ts'

const SHARD = 'credentials/query=a/part-00000.csv'
const SEALED = '_state/sealed/0'

const failing = function* () {
  yield Buffer.alloc(9 << 20)
  throw new Error('no more')
}

export function filesAreWhole(make: MakeWorld): void {
  describe('a file', () => {
    it('reads back unchanged, whole and in ranges, for its owner and for other readers', async () => {
      const world = await make()
      const [here, elsewhere] = [await nextOwner(world), world.open()]
      const chunk = fc.oneof(fc.string(), fc.uint8Array({ maxLength: 50 }))
      await fc.assert(
        fc.asyncProperty(
          fc.array(chunk, { maxLength: 10 }),
          fc.nat(60),
          fc.nat(60),
          async (chunks, from, to) => {
            await here.replace(SHARD, chunks)
            const read = async (store: Store, ...range: number[]) =>
              Buffer.from((await store.read(SHARD, ...range)) ?? 'nothing')
            const whole = Buffer.concat(chunks.map((part) => Buffer.from(part as string)))
            for (const store of [here, elsewhere]) {
              expect(await read(store)).toEqual(whole)
              expect(await store.size(SHARD)).toBe(whole.length)
              expect(await read(store, from)).toEqual(whole.subarray(from))
              expect(await read(store, from, to)).toEqual(whole.subarray(from, Math.max(from, to)))
              expect(await streamed(store, SHARD)).toEqual(whole)
            }
          },
        ),
        // An end of the file within the range, at its edges, and before it.
        {
          numRuns: cases(30, 8),
          examples: [
            [['0123456789'], 8, 20],
            [['0123456789'], 10, 20],
            [['0123456789'], 12, 20],
            [[], 0, 3],
            [['0123456789'], 3, 4],
          ],
        },
      )
    })

    it('may be large, and be read while others are', async () => {
      const world = await make()
      const own = await nextOwner(world)
      const block = randomBytes(700_001)
      const blocks = Array.from({ length: 26 }, () => block)
      expect(await own.create(SHARD, [...blocks, 'end'])).toBe(true)
      const whole = Buffer.concat([...blocks, Buffer.from('end')])
      expect(await world.open().size(SHARD)).toBe(whole.length)
      const at = block.length * 13
      const [all, middle] = await Promise.all([streamed(own, SHARD), own.read(SHARD, at - 5, at + 5)])
      expect(all.equals(whole)).toBe(true)
      expect(Buffer.from(middle ?? [])).toEqual(whole.subarray(at - 5, at + 5))
    })

    it('can be read in part', async () => {
      const world = await make()
      const own = await nextOwner(world)
      await own.create(SHARD, [Buffer.alloc(3 << 20)])
      for await (const chunk of own.stream(SHARD)) {
        expect(chunk.byteLength).toBeGreaterThan(0)
        break
      }
      await own.remove(SHARD)
      expect(await world.open().size(SHARD)).toBeNull()
    })

    it('is created by one of those that create it at the same time', async () => {
      const world = await make()
      const own = await nextOwner(world)
      const together = await Promise.all(
        ['a', 'b', 'c', 'd'].map((text) => own.create('_state/log/1', [text])),
      )
      expect(together.filter((made) => made)).toHaveLength(1)
      expect(await textOf(world.open(), '_state/log/1')).toBe('abcd'[together.indexOf(true)])
    })

    it('is missing or old when its write fails half-way, and no other file remains', async () => {
      const world = await make()
      const own = await nextOwner(world)
      await own.replace('_manifest.json', ['old'])
      const before = await world.names()
      await expect(own.replace('_manifest.json', failing())).rejects.toThrow('no more')
      await expect(own.create(SHARD, failing())).rejects.toThrow('no more')
      expect(await textOf(world.open(), '_manifest.json')).toBe('old')
      expect(await world.open().read(SHARD)).toBeNull()
      expect(await world.names()).toEqual(before)
    })

    it('is always the old or the new one for a concurrent reader', async () => {
      const world = await make()
      const [writer, reader] = [await nextOwner(world), world.open()]
      const contents = ['a', 'bb'].map((text) => text.repeat(200_000))
      await writer.replace('_manifest.json', [contents[0]!])
      let writing = true
      const reading = (async () => {
        const wrong: number[] = []
        while (writing) {
          await setImmediate()
          const text = (await textOf(reader, '_manifest.json')) ?? ''
          if (!contents.includes(text)) wrong.push(text.length)
        }
        return wrong
      })()
      for (let round = 1; round <= 10; round++) await writer.replace('_manifest.json', [contents[round % 2]!])
      writing = false
      expect(await reading).toEqual([])
    })

    it('has the content of one of the writers that replace it at the same time', async () => {
      const own = await nextOwner(await make())
      const texts = Array.from({ length: 8 }, (_, index) => String(index).repeat(1000))
      await Promise.all(texts.map((text) => own.replace('deep/in/file', [text])))
      expect(texts).toContain(await textOf(own, 'deep/in/file'))
    })

    it.each([
      'credentials/query=keyword.a%2Fb%20c/window=2024-01-01..2024-02-01/part-00000.csv.gz',
      "_quarantine/it's (one)+two & three;~!*.jsonl",
      'reports/%25%41 ü 中 😀',
    ])('keeps its name: %s', async (path) => {
      const world = await make()
      const own = await nextOwner(world)
      await own.create(SEALED, ['x'])
      await own.publish(SEALED, path)
      expect(await textOf(world.open(), path)).toBe('x')
      const at = path.lastIndexOf('/')
      expect(await world.open().list(path.slice(0, at))).toEqual([path.slice(at + 1)])
      await own.remove(path)
      expect(await world.open().read(path)).toBeNull()
    })
  })

  describe('a file whose name is known at its end', () => {
    it.each(some([70, 1, 4, 0, 20], 2))('has all its bytes: %d pieces of 300 kB', async (count) => {
      const world = await make()
      const own = await nextOwner(world)
      const given = Array.from({ length: count }, () => randomBytes(300_000))
      const path = (): string => SEALED
      await own.build(pieces(given), path)
      expect(await world.open().list('_state/sealed')).toEqual(['0'])
      expect((await streamed(world.open(), SEALED)).equals(Buffer.concat(given))).toBe(true)
    })

    it.each([5, 20 << 20])('leaves nothing if its pieces end early, after %d bytes', async (bytes) => {
      const world = await make()
      const own = await nextOwner(world)
      await own.create(SEALED, ['x'])
      const before = await world.names()
      const path = (): string => expect.unreachable()
      await expect(own.build(pieces(['x', Buffer.alloc(bytes)], false), path)).rejects.toThrow('no more')
      expect(await textOf(own, SEALED)).toBe('x')
      expect(await world.names()).toEqual(before)
    })
  })

  it('a missing file cannot be streamed; the error names the path', async () => {
    const { open } = await make()
    await expect(streamed(open(), SHARD)).rejects.toEqual(anError('storage', SHARD))
  })
}
