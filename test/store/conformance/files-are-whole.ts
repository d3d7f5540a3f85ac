import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type MakeWorld, streamed, textOf, writeLog } from './world.ts'

const SHARD = 'credentials/query=a/part-00000.csv'

export function filesAreWhole(make: MakeWorld): void {
  describe('a file', () => {
    it('reads back unchanged, whole and in ranges, for its owner and for other readers', async () => {
      const { open } = await make()
      const [here, elsewhere] = [open(), open()]
      const chunk = fc.oneof(fc.string(), fc.uint8Array({ maxLength: 50 }))
      await fc.assert(
        fc.asyncProperty(fc.array(chunk, { maxLength: 10 }), async (chunks) => {
          await here.writeWhole(SHARD, chunks)
          const whole = Buffer.concat(chunks.map((part) => Buffer.from(part as string)))
          for (const store of [here, elsewhere]) {
            expect(Buffer.from((await store.read(SHARD)) ?? 'nothing')).toEqual(whole)
            expect(await store.size(SHARD)).toBe(whole.length)
            expect(Buffer.from(await store.readRange(SHARD, 2, 7))).toEqual(whole.subarray(2, 7))
            expect(await streamed(store, SHARD)).toEqual(whole)
          }
        }),
        { numRuns: 10 },
      )
    })

    it('is read up to the end of the buffer or of the file', async () => {
      const { open } = await make()
      const store = open()
      await store.writeWhole(SHARD, ['0123456789'])
      for (const [length, expected] of [
        [4, '0123'],
        [10, '0123456789'],
        [12, '0123456789##'],
      ] as const) {
        const bytes = new Uint8Array(length).fill('#'.charCodeAt(0))
        expect(await store.readInto(SHARD, bytes)).toBe(Math.min(length, 10))
        expect(Buffer.from(bytes).toString()).toBe(expected)
      }
      const range = async (start: number, end: number) =>
        Buffer.from(await store.readRange(SHARD, start, end)).toString()
      expect(await range(0, 10)).toBe('0123456789')
      expect(await range(3, 4)).toBe('3')
      expect(await range(4, 4)).toBe('')
      expect(await range(8, 20)).toBe('89')
      expect(await range(12, 20)).toBe('')
    })

    it('may be large, and be read while others are', async () => {
      const { open } = await make()
      const store = open()
      const block = randomBytes(700_001)
      const blocks = Array.from({ length: 26 }, () => block)
      await store.writeWhole(SHARD, [...blocks, 'end'])
      const whole = Buffer.concat([...blocks, Buffer.from('end')])
      expect(await open().size(SHARD)).toBe(whole.length)
      const at = block.length * 13
      const [all, middle] = await Promise.all([
        streamed(store, SHARD),
        store.readRange(SHARD, at - 5, at + 5),
      ])
      expect(all.equals(whole)).toBe(true)
      expect(Buffer.from(middle)).toEqual(whole.subarray(at - 5, at + 5))
    })

    it('can be read in part', async () => {
      const { open } = await make()
      const store = open()
      await store.writeWhole(SHARD, [Buffer.alloc(3 << 20)])
      for await (const chunk of store.stream(SHARD)) {
        expect(chunk.byteLength).toBeGreaterThan(0)
        break
      }
      await store.remove(SHARD)
      expect(await open().size(SHARD)).toBeNull()
    })

    it('is missing or old when its write fails half-way, and no other file remains', async () => {
      const { open, names } = await make()
      const store = open()
      await store.writeWhole('_manifest.json', ['old'])
      const before = await names()
      const failing = function* () {
        yield Buffer.alloc(9 << 20)
        throw new Error('no more')
      }
      await expect(store.writeWhole('_manifest.json', failing())).rejects.toThrow('no more')
      await expect(store.writeWhole(SHARD, failing())).rejects.toThrow('no more')
      expect(await textOf(open(), '_manifest.json')).toBe('old')
      expect(await open().read(SHARD)).toBeNull()
      expect(await names()).toEqual(before)
    })

    it('is always the old or the new one for a concurrent reader', async () => {
      const { open } = await make()
      const [writer, reader] = [open(), open()]
      const contents = ['a', 'bb'].map((text) => text.repeat(200_000))
      await writer.writeWhole('_manifest.json', [contents[0]!])
      let writing = true
      const reading = (async () => {
        const wrong: number[] = []
        while (writing) {
          const text = (await textOf(reader, '_manifest.json')) ?? ''
          if (!contents.includes(text)) wrong.push(text.length)
        }
        return wrong
      })()
      for (let round = 1; round <= 10; round++) {
        await writer.writeWhole('_manifest.json', [contents[round % 2]!])
      }
      writing = false
      expect(await reading).toEqual([])
    })

    it('may be empty', async () => {
      const { open } = await make()
      await open().writeWhole('_SUCCESS', [])
      expect(await textOf(open(), '_SUCCESS')).toBe('')
      expect(await open().size('_SUCCESS')).toBe(0)
      expect(await streamed(open(), '_SUCCESS')).toHaveLength(0)
      expect(await open().readInto('_SUCCESS', new Uint8Array(3))).toBe(0)
    })

    it.each([
      'credentials/query=keyword.a%2Fb%20c/window=2024-01-01..2024-02-01/part-00000.csv.gz',
      "_quarantine/it's (one)+two & three;~!*.jsonl",
      '_state/orphans/%25%41 ü 中 😀',
    ])('keeps its name: %s', async (path) => {
      const { open } = await make()
      await open().writeWhole(path, ['x'])
      expect(await textOf(open(), path)).toBe('x')
      const at = path.lastIndexOf('/')
      expect(await open().list(path.slice(0, at))).toEqual([path.slice(at + 1)])
      await open().remove(path)
      expect(await open().read(path)).toBeNull()
    })
  })

  describe('publishing', () => {
    const OPEN = '_state/open/0.part'

    it('moves a file, and does nothing the second time', async () => {
      const { open } = await make()
      await open().writeWhole(OPEN, ['rows'])
      for (let time = 0; time < 2; time++) {
        await open().publish(OPEN, SHARD)
        expect(await textOf(open(), SHARD)).toBe('rows')
        expect(await open().size(OPEN)).toBeNull()
      }
    })

    it('replaces another file', async () => {
      const { open } = await make()
      const store = open()
      await store.writeWhole(SHARD, ['old and longer'])
      await writeLog(store, OPEN, 'new')
      await store.publish(OPEN, SHARD)
      expect(await textOf(store, SHARD)).toBe('new')
      expect(await textOf(open(), SHARD)).toBe('new')
    })

    it('publishes a file written in parts, and leaves only the final name', async () => {
      const { open, names } = await make()
      const store = open()
      const log = await store.openLog(OPEN, 0)
      const parts = [randomBytes(3_000_000), randomBytes(9_000_000), randomBytes(17)]
      for (const part of parts) {
        await log.append([part.subarray(0, 10), part.subarray(10)])
        await log.fsync()
      }
      await log.close()
      await store.publish(OPEN, SHARD)
      expect((await streamed(open(), SHARD)).equals(Buffer.concat(parts))).toBe(true)
      expect(await names()).toEqual([expect.stringMatching(/credentials\/query=a\/part-00000\.csv$/)])
    })

    it('works concurrently', async () => {
      const { open } = await make()
      const store = open()
      const numbers = Array.from({ length: 16 }, (_, number) => String(number).padStart(5, '0'))
      await Promise.all(
        numbers.map(async (number) => {
          await writeLog(store, `_state/open/${number}.part`, `${number} `, 'rows')
          await store.publish(`_state/open/${number}.part`, `credentials/part-${number}.csv`)
        }),
      )
      expect(await open().list('credentials')).toEqual(numbers.map((number) => `part-${number}.csv`))
      expect(await textOf(open(), 'credentials/part-00011.csv')).toBe('00011 rows')
      expect(await open().list('_state/open')).toEqual([])
    })
  })
}
