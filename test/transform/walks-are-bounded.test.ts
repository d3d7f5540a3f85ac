import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { skipValue } from '../../src/transform/scan/json-steps.ts'
import { random } from '../support/random.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { isEqual, PLANS } from './agreement.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'
import { pick, randomPage, wildness } from './random-page.ts'
import { type Walker, withWalkers } from './walkers.ts'

const NEW_SOURCE = 3
/** Each byte may be copied, walked over twice, and kept as a source. */
const PASSES = 4
/** What a call counts beside its bytes. */
const CALL = 16

/** Bytes that the walker of every path has passed since {@link begin}; beyond `most` it ends with an error. */
let work = 0
let most = Number.POSITIVE_INFINITY

function count(bytes: number): void {
  work += Math.max(bytes, 0) + CALL
  if (work > most) throw new Error('The decoder walks over a page again and again')
}

beforeAll(() => {
  const counted = (walker: Walker): Walker => ({
    ...walker,
    walk: (start) => {
      const records = walker.walk(start)
      const { status, position, sourceEnd } = walker
      count((status.value === NEW_SOURCE ? sourceEnd.value : position.value) - start)
      return records
    },
    open: (bytes) => {
      count(bytes)
      return walker.open(bytes)
    },
    learn: (start, length, idLength) => {
      count(length + idLength)
      return walker.learn(start, length, idLength)
    },
  })
  vi.stubGlobal('WebAssembly', withWalkers(counted))
})

afterAll(() => {
  vi.unstubAllGlobals()
})

/** Reads a page, with a limit on the bytes walked over. @returns whether it is one */
function decode(paths: ReturnType<typeof readersOf>, body: Buffer): boolean {
  work = 0
  most = PASSES * body.length + 64 * CALL
  try {
    return isEqual(paths, body, pageContext())
  } catch (error) {
    if (!isExportError(error)) throw error
    return false
  } finally {
    most = Number.POSITIVE_INFINITY
  }
}

/** A walk that never ends, in whatever function, fails the test in place of hanging it. */
function watched(check: () => void): void {
  const holder = globalThis as { watchedCheck?: () => void }
  holder.watchedCheck = check
  try {
    runInThisContext('watchedCheck()', { timeout: THOROUGH ? 1_800_000 : 120_000 })
  } finally {
    delete holder.watchedCheck
  }
}

const item = (fields: string): string =>
  `{"id":33880703907,"identity_name":"a@b","imported_at":"2024-07-22T19:25:52Z","source_id":"s",${fields}}`
const page = (...items: string[]): Buffer => Buffer.from(`{"items":[${items.join()}],"next":null}`)
const source = (id: string, name = ''): string => `"source":{"id":"${id}","name":"${name}"}`

const LONG = 'x'.repeat(200)
const HUGE = 'x'.repeat(3_000_000)
const many = (length: number, one: (i: number) => string): string =>
  Array.from({ length }, (_, i) => one(i)).join()

test.each([
  ['the same short source twice', page(item(`${source('s')},${source('s')}`))],
  ['two short sources in every item', page(...Array(40).fill(item(`${source('s')},${source('t')}`)))],
  ['two very large sources', page(item(`${source(HUGE, 'a')},${source(`${HUGE}y`, 'b')}`))],
  ['sources that begin alike', page(item(many(60, (i) => source('s', `${LONG}${i}`))))],
  ['more sources than are known', page(item(many(40_000, (i) => source(`s${i}`, LONG.slice(0, 90)))))],
  [
    'sources that change places',
    page(...['st', 'ts', 'st'].map((ids) => item(many(2, (i) => source(ids[i]!))))),
  ],
])('an item with %s is walked over once more at most', (_, body) => {
  const paths = readersOf(decodeSettings())
  watched(() => expect(() => decode(paths, body)).not.toThrow())
})

test('pages with members, slices and bytes moved, repeated and changed are walked over by their bytes', () => {
  const every = PLANS.map((plan) => readersOf(plan))
  let pages = 0
  watched(() =>
    fc.assert(
      fc.property(fc.integer(), wildness(200), (seed, wild) => {
        const next = random(seed)
        let body = randomPage(next, wild, 5)
        for (let changes = Math.floor(next() * 6); changes >= 0; changes--) body = mutated(body, next)
        if (decode(pick(next, every), body)) pages++
      }),
      { numRuns: cases(20_000, 800) },
    ),
  )
  expect(pages).toBeGreaterThan(40)
})

function mutated(body: Buffer, next: () => number): Buffer {
  const at = (): number => Math.floor(next() * (body.length + 1))
  const [from, to] = [at(), at()].sort((a, b) => a - b) as [number, number]
  const into = at()
  switch (Math.floor(next() * 12)) {
    case 0:
      return Buffer.concat([body.subarray(0, from), body.subarray(to)])
    case 1:
      return Buffer.concat([body.subarray(0, into), body.subarray(from, to), body.subarray(into)])
    case 2: {
      const changed = Buffer.from(body)
      if (from < body.length) changed[from] = pick(next, [...Buffer.from('"\\{}[],: 0e-n'), 0, 0xff])
      return changed
    }
    default: {
      const members = membersOf(body)
      if (members.length === 0) return body
      const [start, end] = pick(next, members)
      const [, behind] = pick(next, members)
      const member = next() < 0.5 ? Buffer.from(pick(next, SOURCES)) : body.subarray(start, end)
      return Buffer.concat([body.subarray(0, behind), Buffer.from(','), member, body.subarray(behind)])
    }
  }
}

/** Around the length from which on the walker keeps a source, and some that begin alike. */
const SOURCES = ['', 'x', 'x'.repeat(71), 'x'.repeat(72), `${LONG}a`, `${LONG}b`].flatMap((name) => [
  source('s', name),
  source('t', name),
])

/** Start of the key and end of the value of what looks like a member. */
function membersOf(body: Buffer): [start: number, end: number][] {
  return [...body.toString('latin1').matchAll(/"[a-z_]+"\s*:\s*/g)].map(({ 0: key, index }) => [
    index,
    Math.min(skipValue(body, index + key.length), body.length),
  ])
}
