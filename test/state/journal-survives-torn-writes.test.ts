import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ExportError, type Store } from '../../src/core/index.ts'
import { JOURNAL_START, openJournal, readJournal } from '../../src/state/journal/journal.ts'
import { anError } from '../disk/errors.ts'
import { storeAt, temporaryStore } from '../disk/temporary-store.ts'
import { lossyStore } from '../support/lossy-store.ts'
import { random } from '../support/random.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { writeJournal } from './lines.ts'

const PATH = '_state/checkpoint.jsonl'
const LINES = [
  { kind: 'header', version: 3, text: 'ü "quoted" \\ \n and a \u2028' },
  {
    kind: 'transaction',
    lines: [
      { kind: 'page', chain: 0, next: 'bmV4dA==' },
      { kind: 'x', rows: 10_000 },
    ],
  },
  { kind: 'page', chain: 0, next: null, requests: 7 },
  { kind: 'end', status: 'complete' },
]
let WHOLE: Buffer
let ENDS: readonly number[]

beforeAll(async () => {
  const root = mkdtempSync(join(tmpdir(), 'spillway-test-'))
  ENDS = await writeJournal(storeAt(root), PATH, LINES)
  WHOLE = readFileSync(join(root, PATH))
  rmSync(root, { recursive: true })
})

let store: Store
let file: string

beforeEach(() => {
  const temporary = temporaryStore()
  store = temporary.store
  file = join(temporary.root, PATH)
  mkdirSync(dirname(file), { recursive: true })
})

async function appendAll(lines: readonly object[]): Promise<void> {
  const journal = await openJournal(store, PATH, JOURNAL_START)
  await journal.append(lines)
  await journal.close()
}

async function read(): Promise<{ lines: unknown[]; numbers: number[]; good: number | null }> {
  const lines: unknown[] = []
  const numbers: number[] = []
  const end = await readJournal(store, PATH, (line, number) => {
    lines.push(line)
    numbers.push(number)
  })
  return { lines, numbers, good: end === null ? null : end.size }
}

describe('a journal', () => {
  it('returns its lines, each still one JSON object that any tool can read', async () => {
    writeFileSync(file, WHOLE)
    expect(await read()).toEqual({ lines: LINES, numbers: [1, 2, 3, 4], good: WHOLE.length })
    const texts = WHOLE.toString().trimEnd().split('\n')
    expect(texts.map((text) => JSON.parse(text))).toEqual(
      LINES.map((line, index) => ({
        ...line,
        flushed: index === 0 ? 0 : ENDS[index - 1],
        crc: expect.stringMatching(/^[0-9a-f]{16}$/),
      })),
    )
  })

  it('that does not exist is read as null, and an empty one has no lines', async () => {
    expect((await read()).good).toBeNull()
    writeFileSync(file, '')
    expect(await read()).toEqual({ lines: [], numbers: [], good: 0 })
  })

  it('returns any lines, whatever their contents and number', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ kind: fc.string(), value: fc.json() })), async (lines) => {
        await appendAll(lines)
        expect((await read()).lines).toEqual(JSON.parse(JSON.stringify(lines)))
      }),
      { numRuns: 50 },
    )
  })

  it('is read across the chunks of a large file', async () => {
    const lines = Array.from({ length: 9000 }, (_, index) => ({ index, text: 'é'.repeat(index % 300) }))
    await appendAll(lines)
    expect(statSync(file).size).toBeGreaterThan(2 << 20)
    expect((await read()).lines).toEqual(lines)
  })

  it('ignores a last line that was torn at any byte, and is not changed by reading', async () => {
    // The first and last bytes of each line matter most.
    const cuts = Array.from({ length: WHOLE.length + 1 }, (_, cut) => cut)
    const edges = new Set(ENDS.flatMap((end) => [end - 1, end, end + 1]))
    const tried = THOROUGH ? cuts : cuts.filter((cut) => cut % 7 === 0 || edges.has(cut))
    for (const cut of tried) {
      writeFileSync(file, WHOLE.subarray(0, cut))
      const whole = ENDS.filter((end) => end <= cut).length
      expect(await read()).toMatchObject({ lines: LINES.slice(0, whole), good: ENDS[whole - 1] ?? 0 })
      expect(readFileSync(file)).toEqual(WHOLE.subarray(0, cut))
    }
  })

  it('ignores several torn lines at its end, as one write of many lines may leave them', async () => {
    const page = fc.oneof(
      fc.constant('\n'),
      fc.string({ maxLength: 30 }).map((text) => `{"kind":"page","x":${JSON.stringify(text)}\n`),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc.constant(Buffer.alloc(5000)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(page, { maxLength: 5 }), async (torn) => {
        writeFileSync(file, WHOLE)
        for (const piece of torn) appendFileSync(file, piece)
        expect(await read()).toMatchObject({ lines: LINES, good: WHOLE.length })
      }),
      { numRuns: 60 },
    )
  })

  it('is refused when any bit of an earlier line has changed, and is not changed', async () => {
    // The line break before the last line counts with that: without it both are one torn line.
    const end = (ENDS.at(-2) ?? 0) - 1
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: end - 1 }), fc.nat({ max: 7 }), async (index, bit) => {
        const bytes = Buffer.from(WHOLE)
        bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
        writeFileSync(file, bytes)
        await expect(read()).rejects.toEqual(anError('damaged', PATH))
        expect(readFileSync(file)).toEqual(bytes)
      }),
      { numRuns: cases(300, 30) },
    )
  })

  it('never returns a line that was not written, whatever bytes are changed, removed or inserted', async () => {
    const change = fc.record({
      start: fc.nat({ max: ENDS.at(-1) ?? 0 }),
      cut: fc.nat({ max: 80 }),
      put: fc.uint8Array({ maxLength: 20 }),
    })
    await fc.assert(
      fc.asyncProperty(change, async ({ start, cut, put }) => {
        const changed = [WHOLE.subarray(0, start), put, WHOLE.subarray(start + cut)]
        writeFileSync(file, Buffer.concat(changed))
        const seen: unknown[] = []
        await readJournal(store, PATH, (line) => seen.push(line)).catch((error: unknown) => {
          expect(error).toEqual(anError('damaged', PATH))
        })
        for (const line of seen) expect(LINES).toContainEqual(line)
      }),
      { numRuns: cases(300, 30) },
    )
  })

  it.each([
    ['is missing', [0, 1, 3]],
    ['stands twice', [0, 1, 1, 2, 3]],
    ['has changed places with another', [0, 2, 1, 3]],
  ])('is refused when a line in the middle %s', async (_, order) => {
    const journal = await openJournal(store, PATH, JOURNAL_START)
    for (const line of LINES) await journal.append([line])
    await journal.close()
    const lines = readFileSync(file, 'utf8').split('\n')
    writeFileSync(file, order.map((index) => `${lines[index]}\n`).join(''))
    await expect(read()).rejects.toEqual(anError('damaged', PATH))
  })
})

describe('a journal whose last append reached the disk only in part', () => {
  /** Three committed lines, and three of an append that was never confirmed. */
  async function unfinished(): Promise<{ flushed: number; ends: readonly number[]; whole: Buffer }> {
    const journal = await openJournal(store, PATH, JOURNAL_START)
    for (const line of LINES.slice(0, 3)) await journal.append([line])
    const flushed = journal.size
    await journal.append([{ kind: 'a' }, { kind: 'b', text: 'x'.repeat(50) }, { kind: 'c' }])
    await journal.close()
    const whole = readFileSync(file)
    const ends = [...whole].flatMap((byte, index) => (byte === 10 ? [index + 1] : []))
    return { flushed, ends, whole }
  }

  it.each([
    ['its first line', 3, 3],
    ['the one in the middle', 4, 4],
  ])('ends before %s where that is the hole, though good lines follow', async (_, hole, good) => {
    const { whole, ends } = await unfinished()
    writeFileSync(file, Buffer.from(whole).fill(0, ends[hole - 1], ends[hole]))
    expect(await read()).toMatchObject({ good: ends[good - 1], lines: { length: good } })
    // A line break of the hole may be there too.
    writeFileSync(file, Buffer.from(whole).fill(0, ends[hole - 1], (ends[hole] ?? 0) - 1))
    expect((await read()).good).toBe(ends[good - 1])
  })

  it('is refused if the hole is in lines before the last fsync', async () => {
    const { whole, flushed, ends } = await unfinished()
    for (let at = 0; at < flushed; at += 7) {
      const holed = Buffer.from(whole).fill(0, at, at + 7)
      writeFileSync(file, holed)
      await expect(read(), `at ${at}`).rejects.toEqual(anError('damaged', PATH))
      expect(readFileSync(file)).toEqual(holed)
    }
    expect(flushed).toBe(ends[2])
  })

  it('keeps every committed line and returns no other, after any losses of power and kills', async () => {
    const round = fc.record({
      appends: fc.array(fc.array(fc.nat({ max: 120 }), { minLength: 1, maxLength: 5 }), { maxLength: 3 }),
      power: fc.option(fc.integer(), { nil: null }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 6 }), async (rounds) => {
        const { store: real, root } = temporaryStore()
        const disk = lossyStore(real, root, 64)
        const written: unknown[] = []
        let counted = 0
        let number = 0
        for (const { appends, power } of rounds) {
          const seen: unknown[] = []
          const end = await readJournal(disk.store, PATH, (line) => seen.push(line))
          expect(seen.length).toBeGreaterThanOrEqual(counted)
          expect(seen).toEqual(written.slice(0, seen.length))
          written.length = seen.length
          const stopping = unflushedAfter(disk.store, appends.length)
          const journal = await openJournal(stopping.store, PATH, end ?? JOURNAL_START)
          // The lines that were read are on the disk from here on.
          counted = seen.length
          for (const lengths of appends) {
            const lines = lengths.map((length) => ({ number: number++, text: '-'.repeat(length) }))
            written.push(...lines)
            const before = written.length
            await journal.append(lines).then(
              () => {
                counted = before
              },
              () => {},
            )
          }
          await journal.close()
          if (power !== null) disk.cut(random(power))
        }
        const seen: unknown[] = []
        await readJournal(disk.store, PATH, (line) => seen.push(line))
        expect(seen.length).toBeGreaterThanOrEqual(counted)
        expect(seen).toEqual(written.slice(0, seen.length))
      }),
      { numRuns: cases(300, 30) },
    )
  })
})

/** The process ends before the fsync of the last of these appends. */
function unflushedAfter(base: Store, appends: number): { store: Store } {
  let left = appends
  const openLog: Store['openLog'] = async (path, size) => {
    const log = await base.openLog(path, size)
    let appended = false
    return {
      ...log,
      get size() {
        return log.size
      },
      append: async (chunks) => {
        if (left > 0) await log.append(chunks)
        appended = true
      },
      fsync: async () => {
        if (appended && --left <= 0) throw new Error('the process has ended')
        await log.fsync()
      },
    }
  }
  return { store: { ...base, openLog } }
}

describe('appending', () => {
  it('overwrites what a crash left after the valid lines', async () => {
    writeFileSync(file, Buffer.concat([WHOLE, Buffer.from('{"kind":"page","next":"torn and rather lon')]))
    const end = await readJournal(store, PATH, () => {})
    const journal = await openJournal(store, PATH, end ?? JOURNAL_START)
    await journal.append([{ kind: 'x' }])
    await journal.close()
    expect((await read()).lines).toEqual([...LINES, { kind: 'x' }])
  })

  it('from many callers at once writes every line, whole appends in the order of the calls', async () => {
    const journal = await openJournal(store, PATH, JOURNAL_START)
    const calls = Array.from({ length: 300 }, (_, call) =>
      Array.from({ length: 1 + (call % 3) }, (__, part) => ({ call, part })),
    )
    let settled = 0
    await Promise.all(
      calls.map(async (lines, index) => {
        await journal.append(lines)
        // Callers continue in the order of their calls too: their next steps rely on it.
        expect(settled++).toBe(index)
        expect(readFileSync(file, 'utf8')).toContain(`{"call":${index},"part":${lines.length - 1},`)
      }),
    )
    await journal.close()
    expect((await read()).lines).toEqual(calls.flat())
    expect(journal.size).toBe(statSync(file).size)
  })

  it('shares one fsync among waiting callers', async () => {
    let flushes = 0
    const counting: Store = {
      ...store,
      openLog: async (path, size) => {
        const log = await store.openLog(path, size)
        return {
          ...log,
          get size() {
            return log.size
          },
          fsync: () => {
            flushes++
            return log.fsync()
          },
        }
      },
    }
    const journal = await openJournal(counting, PATH, JOURNAL_START)
    await Promise.all(Array.from({ length: 200 }, (_, index) => journal.append([{ index }])))
    await journal.close()
    expect(flushes).toBeLessThan(10)
    expect((await read()).lines).toHaveLength(200)
  })

  it('fails for all callers after a failed write, and durable lines stay', async () => {
    const journal = await openJournal(store, PATH, JOURNAL_START)
    await journal.append([{ index: 0 }])
    await journal.close()
    // Writing to a closed file fails as a disk does.
    const behind = await Promise.allSettled([1, 2, 3].map((index) => journal.append([{ index }])))
    expect(behind.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(journal.append([{ index: 4 }])).rejects.toEqual(anError('storage', PATH))
    store = storeAt(join(dirname(file), '..'))
    expect((await read()).lines).toEqual([{ index: 0 }])
  })

  it.each(['append', 'flush'] as const)(
    'never continues after a failed %s, even if the disk would accept more',
    async (what) => {
      let fail = false
      const failing: Store = {
        ...store,
        openLog: async (path, size) => {
          const log = await store.openLog(path, size)
          const once = async (work: () => Promise<void>): Promise<void> => {
            if (fail) {
              fail = false
              throw new ExportError('storage', 'The disk is full', path, 'Free some space.')
            }
            await work()
          }
          return {
            ...log,
            get size() {
              return log.size
            },
            append: (chunks) => (what === 'append' ? once(() => log.append(chunks)) : log.append(chunks)),
            fsync: () => (what === 'flush' ? once(() => log.fsync()) : log.fsync()),
          }
        },
      }
      const journal = await openJournal(failing, PATH, JOURNAL_START)
      await journal.append([{ index: 0 }])
      fail = true
      await expect(journal.append([{ index: 1 }])).rejects.toEqual(anError('storage', PATH))
      await expect(journal.append([{ index: 2 }])).rejects.toEqual(anError('storage', PATH))
      await expect(journal.append([{ index: 3 }])).rejects.toEqual(anError('storage', PATH))
      await journal.close()
      for (const line of (await read()).lines) expect([{ index: 0 }, { index: 1 }]).toContainEqual(line)
    },
  )
})
