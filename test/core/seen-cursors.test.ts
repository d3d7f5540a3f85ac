import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SeenCursors } from '../../src/rows/index.ts'

function seenOf(cursors: readonly string[], before: SeenCursors | null = null): SeenCursors {
  const seen = new SeenCursors(before)
  for (const cursor of cursors) seen.add(cursor)
  return seen
}

it('the cursors that a chain has seen are those that were added, at first or later, and no others', () => {
  const cursors = fc.uniqueArray(fc.string({ unit: 'binary' }), { maxLength: 90 })
  fc.assert(
    fc.property(cursors, (all) => {
      const [before, later, others] = [0, 1, 2].map((rest) => all.filter((_, i) => i % 3 === rest))
      const first = seenOf(before!)
      const seen = seenOf(later!, first)
      expect([...before!, ...later!].every((cursor) => seen.has(cursor))).toBe(true)
      expect(others!.some((cursor) => seen.has(cursor))).toBe(false)
      expect([first.size, seen.size]).toEqual([before!.length, before!.length + later!.length])
      // What is added to a copy does not change the original.
      expect(later!.some((cursor) => first.has(cursor))).toBe(false)
    }),
    { numRuns: 100 },
  )
})
