import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLASSES, classOf, largestGroups, MIN_ROWS, shareOf, shown } from '../../src/report/disclosure.ts'

const groups = fc
  .uniqueArray(
    fc.tuple(fc.string(), fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 1e6 }))),
    {
      selector: ([name]) => name,
      maxLength: 30,
    },
  )
  .map((all): [string, number][] => all)

const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)

describe('groups', () => {
  it('are shown when they have enough rows, and with the others they add up to the total', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 1, max: 20 }), fc.nat({ max: 20 }), (given, most, others) => {
        const result = largestGroups(given, most, others)
        expect(result.groups.length).toBeLessThanOrEqual(most)
        for (const { name, rows } of result.groups) {
          expect(rows).toBeGreaterThanOrEqual(MIN_ROWS)
          expect(given).toContainEqual([name, rows])
        }
        const all = sum(given.map(([, rows]) => rows)) + others
        const rest = all - sum(result.groups.map(({ rows }) => rows))
        // The rest of a total reveals as much as a number would.
        if (result.groups.length > 0) expect(rest === 0 || rest >= MIN_ROWS).toBe(true)
        expect(result.others).toBe(shown(rest))
      }),
    )
  })

  it('are the largest ones', () => {
    expect(
      largestGroups(
        [
          ['a', 5],
          ['b', 100],
          ['c', 50],
          ['d', 7],
        ],
        2,
      ),
    ).toEqual({
      groups: [
        { name: 'b', rows: 100 },
        { name: 'c', rows: 50 },
      ],
      others: 12,
    })
  })

  it('are merged from the smallest on when the others alone would be few', () => {
    expect(
      largestGroups(
        [
          ['a', 100],
          ['b', 10],
          ['c', 2],
        ],
        9,
      ),
    ).toEqual({
      groups: [{ name: 'a', rows: 100 }],
      others: 12,
    })
    expect(
      largestGroups(
        [
          ['a', 3],
          ['b', 1],
        ],
        9,
      ),
    ).toEqual({ groups: [], others: null })
  })
})

it.each([
  [0, 100, 'none'],
  [1, 100, 'few'],
  [4, 100, 'few'],
  [5, 100, 5],
  [5, 1_000_000, 1],
  [95, 100, 95],
  [96, 100, 'nearly all'],
  [999_990, 1_000_000, 99],
  [100, 100, 'all'],
  [0, 0, 'none'],
] as const)('%i of %i rows are shown as %s', (part, rows, share) => {
  expect(shareOf(part, rows)).toBe(share)
})

it('cells of the heat map are classes, of which the first covers what is hidden', () => {
  const rows = [0, 1, MIN_ROWS - 1, 9, 10, 99, 100, 999_999, 1_000_000, 1e12]
  expect(rows.map(classOf)).toEqual([0, 1, 1, 1, 2, 2, 3, 6, 7, 7])
  expect(CLASSES).toHaveLength(8)
})
