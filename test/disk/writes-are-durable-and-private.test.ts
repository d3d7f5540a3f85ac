import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diskStore } from '../../src/disk/index.ts'
import { anError } from './errors.ts'
import { temporaryFolder, temporaryStore } from './temporary-store.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const modeOf = (path: string): number => statSync(path).mode & 0o777

describe('files and folders', () => {
  it('are readable by their owner alone', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('_manifest.json', ['{}'])
    await (await store.openLog('_state/open/0.part', 0)).close()
    await store.publish('_state/open/0.part', 'credentials/query=a/part-00000.parquet')
    for (const folder of ['', '_state', '_state/open', 'credentials', 'credentials/query=a']) {
      expect(modeOf(join(root, folder)).toString(8)).toBe('700')
    }
    for (const file of ['_manifest.json', 'credentials/query=a/part-00000.parquet']) {
      expect(modeOf(join(root, file)).toString(8)).toBe('600')
    }
  })

  it('have the configured modes', async () => {
    const root = join(temporaryFolder(), 'data')
    const store = diskStore({ root, fileMode: 0o640, dirMode: 0o750 })
    await store.writeWhole('a/b', [''])
    expect(modeOf(join(root, 'a')).toString(8)).toBe('750')
    expect(modeOf(join(root, 'a/b')).toString(8)).toBe('640')
  })

  it('have the written content, in chunks of any size', async () => {
    const { store } = temporaryStore()
    const chunk = fc.oneof(fc.string(), fc.uint8Array({ maxLength: 50 }))
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { maxLength: 20 }), async (chunks) => {
        await store.writeWhole('a/file', chunks)
        const whole = Buffer.concat(chunks.map((part) => Buffer.from(part as string)))
        expect(Buffer.from((await store.read('a/file')) ?? [])).toEqual(whole)
        expect(await store.size('a/file')).toBe(whole.length)
        expect(Buffer.from(await store.readRange('a/file', 2, 7))).toEqual(whole.subarray(2, 7))
        const streamed: Uint8Array[] = []
        for await (const part of store.stream('a/file')) streamed.push(part)
        expect(Buffer.concat(streamed)).toEqual(whole)
      }),
      { numRuns: 40 },
    )
  })

  it('may be larger than one write', async () => {
    const { store } = temporaryStore()
    const block = Buffer.alloc(700_000, 'x')
    await store.writeWhole('large', [block, 'y', block, block])
    expect(await store.size('large')).toBe(2_100_001)
    expect(Buffer.from(await store.readRange('large', 699_999, 700_002)).toString()).toBe('xyx')
  })
})

describe('a whole file', () => {
  it('is unchanged, without other files beside it, when writing a new one fails', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('state/file', ['old'])
    const failing = function* () {
      yield Buffer.alloc(3 << 20)
      throw new Error('no more')
    }
    await expect(store.writeWhole('state/file', failing())).rejects.toThrow()
    expect(readFileSync(join(root, 'state/file'), 'utf8')).toBe('old')
    expect(readdirSync(join(root, 'state'))).toEqual(['file'])
  })

  it('can not replace a folder, and leaves nothing behind', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('state/file/inner', ['x'])
    await expect(store.writeWhole('state/file', ['y'])).rejects.toEqual(anError('storage', 'state/file'))
    expect(readdirSync(join(root, 'state'))).toEqual(['file'])
  })

  it('is always the old or the new one for a concurrent reader', async () => {
    const { store } = temporaryStore()
    const contents = ['a', 'b'].map((letter) => letter.repeat(300_000))
    await store.writeWhole('file', [contents[0] ?? ''])
    let writing = true
    const reader = async () => {
      while (writing) {
        const text = Buffer.from((await store.read('file')) ?? []).toString()
        expect(contents.includes(text)).toBe(true)
      }
    }
    const reading = reader()
    for (let round = 0; round < 20; round++) await store.writeWhole('file', [contents[round % 2] ?? ''])
    writing = false
    await reading
  })

  it('written concurrently has the content of one of the writers', async () => {
    const { store, root } = temporaryStore()
    const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(1000))
    await Promise.all(texts.map((text) => store.writeWhole('deep/in/file', [text])))
    expect(texts).toContain(readFileSync(join(root, 'deep/in/file'), 'utf8'))
    expect(readdirSync(join(root, 'deep/in'))).toEqual(['file'])
  })
})

describe('publishing', () => {
  it('moves the file, and does nothing the second time', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('_state/open/0.part', ['rows'])
    for (let time = 0; time < 2; time++) {
      await store.publish('_state/open/0.part', 'credentials/a/part-00000.csv')
      expect(readFileSync(join(root, 'credentials/a/part-00000.csv'), 'utf8')).toBe('rows')
      expect(await store.size('_state/open/0.part')).toBeNull()
    }
  })

  it('creates a folder that was removed meanwhile', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('credentials/a/first', ['1'])
    await store.writeWhole('open', ['rows'])
    rmSync(join(root, 'credentials'), { recursive: true })
    await store.publish('open', 'credentials/a/second')
    expect(readFileSync(join(root, 'credentials/a/second'), 'utf8')).toBe('rows')
  })

  it('fails when both the file and its final name are missing', async () => {
    const { store } = temporaryStore()
    await expect(store.publish('open', 'final')).rejects.toEqual(anError('storage', 'final'))
  })
})

describe('a log', () => {
  it('is truncated to its valid size, and grows from there', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('log', ['0123456789'])
    const log = await store.openLog('log', 4)
    expect(log.size).toBe(4)
    await log.append([bytes('AB'), bytes(''), bytes('C')])
    await log.fsync()
    expect(log.size).toBe(7)
    await log.close()
    expect(readFileSync(join(root, 'log'), 'utf8')).toBe('0123ABC')
  })

  it('is emptied at size 0', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('log', ['left by a crash'])
    const log = await store.openLog('log', 0)
    expect(statSync(join(root, 'log')).size).toBe(0)
    await log.append([bytes('next')])
    await log.close()
    expect(readFileSync(join(root, 'log'), 'utf8')).toBe('next')
  })

  it('is rejected when it is shorter than its valid size, and is unchanged', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('log', ['012'])
    await expect(store.openLog('log', 4)).rejects.toEqual(anError('damaged', 'log'))
    expect(readFileSync(join(root, 'log'), 'utf8')).toBe('012')
  })

  it('is rejected when it is missing, and is not created', async () => {
    const { store, root } = temporaryStore()
    await expect(store.openLog('state/log', 4)).rejects.toEqual(anError('damaged', 'state/log'))
    expect(existsSync(join(root, 'state/log'))).toBe(false)
  })

  it('has the appended content in the order of the calls, flushed anywhere in between', async () => {
    const { store, root } = temporaryStore()
    const step = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant('reopen'), fc.constant('anew'))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), fc.nat({ max: 30 }), async (steps, extra) => {
        let expected: Buffer = Buffer.alloc(0)
        let log = await store.openLog('log', 0)
        for (const what of steps) {
          if (what === 'anew') {
            await log.close()
            log = await store.openLog('log', 0)
            expected = Buffer.alloc(0)
          } else if (what === 'reopen') {
            await log.close()
            writeFileSync(join(root, 'log'), Buffer.alloc(extra, '#'), { flag: 'a' })
            log = await store.openLog('log', expected.length)
          } else {
            await log.append([what as Uint8Array])
            expected = Buffer.concat([expected, what as Uint8Array])
          }
          expect(log.size).toBe(expected.length)
        }
        await log.close()
        expect(readFileSync(join(root, 'log'))).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })
})
