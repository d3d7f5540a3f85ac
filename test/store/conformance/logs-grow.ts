import { describe, expect, it, onTestFinished } from 'vitest'
import type { Log, Store } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { add, type MakeWorld, streamed, textOf } from './world.ts'

/** The ways to open a log; all have one contract. */
const WAYS: readonly [name: string, open: (store: Store, path: string, size: number) => Promise<Log>][] = [
  ['openLog', (store, path, size) => store.openLog(path, size)],
  ['openSmallLog', (store, path, size) => store.openSmallLog(path, size)],
]

// One private to the owner, and one that everybody can read.
const PATHS = ['_state/open/0.log', '_state/checkpoint.jsonl']

export function logsGrow(make: MakeWorld): void {
  describe.each(WAYS)('a log (%s)', (_, openLog) => {
    it.each(PATHS)('is visible to other readers up to the last flush: %s', async (path) => {
      const { open } = await make()
      const log = await openLog(open(), path, 0)
      expect(log.path).toBe(path)
      let expected = ''
      for (const text of ['one', 'two', '', 'three']) {
        expected += text
        await log.append([Buffer.from(text), Buffer.from('+')])
        expected += '+'
        expect(log.size).toBe(expected.length)
        await log.fsync()
        expect(await textOf(open(), path)).toBe(expected)
        expect(await open().size(path)).toBe(expected.length)
      }
      const reader = open()
      expect(Buffer.from(await reader.readRange(path, 2, 9)).toString()).toBe(expected.slice(2, 9))
      expect((await streamed(reader, path)).toString()).toBe(expected)
      const bytes = new Uint8Array(6)
      expect(await reader.readInto(path, bytes)).toBe(6)
      expect(Buffer.from(bytes).toString()).toBe(expected.slice(0, 6))
      await log.close()
    })

    it.each(PATHS)('continues at its end, or at an earlier offset: %s', async (path) => {
      const { open } = await make()
      const first = await openLog(open(), path, 0)
      for (const digit of '0123456789') await add(first, digit)
      await first.close()
      const second = await openLog(open(), path, 10)
      expect(second.size).toBe(10)
      await add(second, 'AB')
      await second.close()
      expect(await textOf(open(), path)).toBe('0123456789AB')
      for (const size of [11, 4, 1]) {
        const cut = await openLog(open(), path, size)
        expect(cut.size).toBe(size)
        await cut.close()
        expect(await textOf(open(), path)).toBe('0123456789AB'.slice(0, size))
      }
      const last = await openLog(open(), path, 1)
      await add(last, '-')
      await add(last, 'end')
      await last.close()
      expect(await textOf(open(), path)).toBe('0-end')
    })

    it('is truncated within one flush, and within one append', async () => {
      const { open } = await make()
      const [path] = PATHS as [string]
      await open().writeWhole(path, ['0123456789'])
      const whole = await openLog(open(), path, 10)
      await add(whole, 'ABCDEFGHIJ')
      await add(whole, 'abcdefghij')
      await whole.close()
      for (const [size, text] of [
        [25, '0123456789ABCDEFGHIJabcde'],
        [13, '0123456789ABC'],
        [7, '0123456'],
      ] as const) {
        const cut = await openLog(open(), path, size)
        await add(cut, '!')
        await cut.close()
        expect(await textOf(open(), path)).toBe(`${text}!`)
      }
    })

    it('starts anew at offset 0', async () => {
      const { open } = await make()
      const [path] = PATHS as [string]
      await open().writeWhole(path, ['left by a crash, and longer'])
      for (const text of ['once', 'again']) {
        const log = await openLog(open(), path, 0)
        expect(log.size).toBe(0)
        await add(log, text)
        await log.close()
        expect(await textOf(open(), path)).toBe(text)
      }
    })

    it('continues after a crash at the last fsync', async () => {
      const { open } = await make()
      const [path] = PATHS as [string]
      const crashed = await openLog(open(), path, 0)
      // In a bucket, a close is refused once another writer has continued.
      onTestFinished(async () => void (await Promise.allSettled([crashed.close()])))
      await add(crashed, 'counts')
      await crashed.append([Buffer.from(', does not count')])
      const log = await openLog(open(), path, 6)
      await add(log, ' too')
      expect(await textOf(open(), path)).toBe('counts too')
      await log.close()
    })

    it('is rejected when it is shorter than the offset, or missing, and stays as it was', async () => {
      const { open, names } = await make()
      for (const path of PATHS) {
        await expect(openLog(open(), path, 1)).rejects.toEqual(anError('damaged', path))
        expect(await names()).toEqual([])
      }
      const [path] = PATHS as [string]
      await open().writeWhole(path, ['012'])
      await expect(openLog(open(), path, 4)).rejects.toEqual(anError('damaged', path))
      expect(await textOf(open(), path)).toBe('012')
    })

    it('keeps the appended bytes, although the caller reuses its buffer', async () => {
      const { open } = await make()
      const [path] = PATHS as [string]
      const log = await openLog(open(), path, 0)
      const bytes = Buffer.from('given')
      await log.append([bytes])
      bytes.fill('#')
      await log.fsync()
      await log.close()
      expect(await textOf(open(), path)).toBe('given')
    })

    it('accepts large appends', async () => {
      const { open } = await make()
      const [path] = PATHS as [string]
      const store = open()
      const log = await openLog(store, path, 0)
      const block = Buffer.alloc(1_500_000, 'abcdefg')
      const blocks = Array.from({ length: 7 }, () => block)
      await add(log, 'head')
      await log.append(blocks)
      await add(log, 'tail')
      const all = Buffer.concat([Buffer.from('head'), ...blocks, Buffer.from('tail')])
      const buffer = new Uint8Array(all.length + 1)
      expect(await store.readInto(path, buffer)).toBe(all.length)
      expect(all.equals(buffer.subarray(0, all.length))).toBe(true)
      await log.close()
      expect((await streamed(open(), path)).equals(all)).toBe(true)
    })
  })
}
