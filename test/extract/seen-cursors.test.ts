import fc from 'fast-check'
import { expect, it } from 'vitest'
import { seenCursors } from '../../src/extract/index.ts'

it('knows what it was given, at first or later, and nothing else', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'binary' }), { maxLength: 30 }), (cursors) => {
      const [before, later, others] = [0, 1, 2].map((rest) => cursors.filter((_, i) => i % 3 === rest))
      const seen = seenCursors(before)
      for (const cursor of later!) seen.add(cursor)
      expect([...before!, ...later!].every((cursor) => seen.has(cursor))).toBe(true)
      expect(others!.some((cursor) => seen.has(cursor))).toBe(false)
    }),
    { numRuns: 50 },
  )
})
