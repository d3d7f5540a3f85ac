import { describe, expect, it } from 'vitest'
import type { ExpectedStat } from '../../../src/core/index.ts'
import { write } from '../../disk/temporary-store.ts'
import type { MakeWorld } from './world.ts'

const FILES = [
  ['credentials/a/part-00000.csv', '12345'],
  ['credentials/a/part-00001.csv', ''],
  ['credentials/b/part-00000.csv', 'x'],
  ['_manifest.json', '{}'],
] as const

const AS_EXPECTED: readonly ExpectedStat[] = [
  ...FILES.map(([path, text]) => ({ path, bytes: text.length })),
  { path: 'credentials/a', names: 2 },
  { path: 'credentials/b', names: 1 },
  { path: 'credentials', names: 2 },
]

const OTHERWISE: readonly (readonly ExpectedStat[])[] = [
  [
    { path: 'credentials/a/part-00000.csv', bytes: 4 },
    { path: 'credentials/a/part-00001.csv', bytes: 1 },
    { path: 'credentials/a', names: 1 },
    { path: 'credentials', names: 1 },
  ],
  [
    { path: 'credentials/a/part-00000.csv', bytes: 6 },
    { path: 'credentials/a', names: 3 },
    { path: 'credentials/c', names: 1 },
    { path: 'reports', names: 1 },
  ],
  [
    { path: 'credentials/a/part-00002.csv', bytes: 0 },
    { path: 'credentials/c/part-00000.csv', bytes: 1 },
    { path: 'reports/part-00000.csv', bytes: 1 },
    { path: '_none.json', bytes: 2 },
  ],
]

export function mismatchesAreFound(make: MakeWorld): void {
  describe('a comparison with what is expected', () => {
    it('finds files of another size, folders with another number of names, and missing files', async () => {
      const { open } = await make()
      for (const [path, text] of FILES) await write(open(), path, text)
      const different = (expected: readonly ExpectedStat[]) => open().mismatches(expected)
      expect(await different([])).toEqual([])
      expect(await different(AS_EXPECTED)).toEqual([])
      for (const wrong of OTHERWISE) {
        const right = AS_EXPECTED.filter(({ path }) => !wrong.some((stat) => stat.path === path))
        expect(inOrder(await different([...right, ...wrong]))).toEqual(inOrder(wrong))
      }
    })

    it('counts the folders in a folder among its names', async () => {
      const { open } = await make()
      await write(open(), 'credentials/a/part-00000.csv', 'x')
      await write(open(), 'credentials/a/strange/file', 'x')
      const stat = { path: 'credentials/a', names: 1 }
      expect(await open().mismatches([stat])).toEqual([stat])
    })
  })
}

function inOrder(stats: readonly ExpectedStat[]): readonly ExpectedStat[] {
  return stats.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}
