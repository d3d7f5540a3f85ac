import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isExportError } from '../../src/core/index.ts'
import { seenCursors } from '../../src/extract/index.ts'

it('knows what it was given, and nothing else, also after a way through JSON', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'binary' }), { maxLength: 30 }), (cursors) => {
      const [given, others] = [cursors.filter((_, i) => i % 2 === 0), cursors.filter((_, i) => i % 2 === 1)]
      const seen = seenCursors()
      for (const cursor of given) seen.add(cursor)
      const restored = seenCursors(JSON.parse(JSON.stringify(seen)))
      for (const set of [seen, restored]) {
        expect(given.every((cursor) => set.has(cursor))).toBe(true)
        expect(others.some((cursor) => set.has(cursor))).toBe(false)
      }
      expect(restored.toJSON()).toBe(seen.toJSON())
    }),
    { numRuns: 20 },
  )
})

it('takes eight characters a cursor', () => {
  const seen = seenCursors()
  for (let i = 0; i < 1000; i++) seen.add(`a long and opaque cursor, number ${i}`)
  expect(seen.toJSON()).toHaveLength(8000)
})

it.each(['AAAA', 'no base64!', 'AAAAAAAA='])('refuses a damaged list: %s', (text) => {
  expect(() => seenCursors(text)).toThrow(expect.toSatisfy((error) => isExportError(error, 'damaged')))
})
