import { expect, test } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type ChangesWorld,
  type Copy,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'
import { treeHashes } from './support.ts'

const worldOf = worldsOfFile()

/** Commands that have nothing to do. */
const IDLE = {
  run: ['run'],
  compact: ['compact', '--min-shards', '1000000'],
  prune: ['prune', '--older-than', '1200mo', '--yes'],
} as const
type Idle = keyof typeof IDLE

const CASES: readonly (readonly [Change, Layout])[] = [
  ['compact', 'with tables'],
  ['forget', 'with tables'],
  ['prune', 'partition_by: [query, window]'],
  ['compact', 'partition_by: [query]'],
  ['forget', 'partition_by: [query]'],
  ['redo', 'partition_by: [query]'],
  ['compact', 'in a bucket'],
  ['forget', 'in a bucket'],
]

/**
 * The files that readers and the next commands find. Names in tables are random; numbers of the log, and times in
 * manifest and page, are those of the commands.
 */
async function treeOf({ output }: Copy): Promise<readonly string[]> {
  const files = [...(await treeHashes(output))].filter(
    ([path, hash]) => hash !== '' && !/^_state\/(?:log|lock)/.test(path),
  )
  return files
    .map(([path, hash]) => {
      if (/^_(?:iceberg|delta_log)\//.test(path)) return path.replace(/[0-9a-f-]{12,}|\d+/g, '#')
      return /^(?:_manifest\.json|_report\.html|_state\/(?:checkpoint|suppression))/.test(path)
        ? path
        : `${path} ${hash}`
    })
    .sort()
}

/** The trees of a command that was not begun, and of one that nothing disturbed, each after one with nothing to do. */
async function treesOf(
  world: ChangesWorld,
  change: Change,
  idle: Idle,
): Promise<readonly (readonly string[])[]> {
  const tree = (words: readonly (readonly string[])[]) =>
    world.onCopy(async (copy) => {
      for (const each of words) {
        const ended = await copy.command(each)
        expect(ended.code, ended.stderr).toBe(0)
      }
      return treeOf(copy)
    }, change)
  return [await tree([IDLE[idle]]), await tree([CHANGES[change], IDLE[idle]])]
}

test.each(some(THOROUGH ? CASES : CASES.filter(([, layout]) => layout !== 'in a bucket'), 3))(
  'a %s that is cut at any call, %s, is ended by one command that has nothing to do: the files are those of one that was not',
  async (change, layout) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf(change)
    const points = some(
      calls.map((_, index) => index + 1),
      layout === 'in a bucket' ? 3 : 6,
    )
    for (const [turn, number] of points.entries()) {
      // What a run has begun another one goes on with.
      const idle = change === 'redo' ? 'run' : (Object.keys(IDLE) as Idle[])[turn % 3]!
      const trees = await treesOf(world, change, idle)
      const mode = turn % 2 === 0 ? 'dead' : 'eio'
      await world.onCopy(async (copy) => {
        const about = `${change}, ${layout}: ${mode} ${number} ${calls[number - 1]}, then ${idle}`
        await copy.command(CHANGES[change], `${mode}:${number}`)
        const ended = await copy.command(IDLE[idle])
        expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
        expect(trees, about).toContainEqual(await treeOf(copy))
      }, change)
    }
  },
)
