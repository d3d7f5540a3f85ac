import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  CHANGES,
  type Change,
  type ChangesWorld,
  expectNamedFilesToBeThere,
  expectSettled,
  type Layout,
  worldsOfFile,
} from './changes-world.ts'
import { rowsOf } from './rows.ts'
import { shardPaths } from './support.ts'

const ALL = Object.keys(CHANGES) as Change[]

const worldOf = worldsOfFile()

/** In a bucket the client waits between the attempts of a call. */
const PLACES: readonly (readonly [Layout, number])[] = [
  ['with tables', THOROUGH ? 24 : 1],
  ...(THOROUGH ? ([['in a bucket', 5]] as const) : []),
]

test.each(
  PLACES.flatMap(([layout, steps]) => some(ALL, 3).map((change) => [change, layout, steps] as const)),
)(
  'any call that fails once during %s, %s: _SUCCESS stands only where no row is missing, and a plain run ends it',
  async (change, layout, steps) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf(change)
    for (let step = 1; step <= steps; step++) {
      const number = Math.ceil((calls.length * step) / (steps + 1))
      await failed(world, change, number)
    }
  },
)

async function failed(world: ChangesWorld, change: Change, number: number): Promise<void> {
  await world.onCopy(async (copy) => {
    const about = `${change}, call ${number} fails`
    const ended = await copy.command(CHANGES[change], `eio:${number}`)
    await expectNamedFilesToBeThere(copy, about)
    const outcomes = world.outcomes(change, null)
    const isMissing = copy.damaged !== null && !existsSync(join(copy.output, copy.damaged))
    if (existsSync(join(copy.output, '_SUCCESS')) && !isMissing) {
      const rows = await rowsOf(copy.output)
      for (const [row] of outcomes.at(-1)!) expect(rows.get(row), about).toBe(1)
    }
    await expectSettled(copy, ended.code === 0 ? outcomes.slice(-1) : outcomes, about)
  }, change)
}

test.each(['partition_by: [query]', ...(THOROUGH ? (['in a bucket'] as const) : [])] as const)(
  'a shard that cannot be published while the last pages are committed is published by a plain run, without a request: %s',
  async (layout) => {
    const world = await worldOf(layout)
    const calls = await world.callsOf('first run')
    const published = calls.filter((call) => /^(?:link|CopyObject) (?:out\/)?credentials\//.test(call))
    expect(published.length).toBeGreaterThan(2)
    for (const call of THOROUGH ? published : published.slice(-1)) {
      await world.onCopy(async (copy) => {
        const ended = await copy.command(CHANGES['first run'], `stuck:${call}`)
        expect(ended.code, call).toBe(1)
        expect(existsSync(join(copy.output, '_SUCCESS')), call).toBe(false)
        const status = await copy.command(['status', '--json'])
        const failed = { status: 'failed', error: { kind: 'storage' } }
        expect(JSON.parse(status.stdout).last_run, call).toMatchObject(failed)
        await expectNamedFilesToBeThere(copy, call)
        const all = copy.requests()
        await expectSettled(copy, world.outcomes('first run', null), call)
        if (call === published.at(-1)) expect(copy.requests(), call).toBe(all)
      }, 'first run')
    }
  },
)

test('a store that answers 409 to a new shard has no shard: a forget removes no row', async () => {
  const world = await worldOf('in a bucket')
  const calls = await world.callsOf('forget')
  const sealed = calls.find((call) => call.startsWith('PutObject out/_state/sealed/'))!
  await world.onCopy(async (copy) => {
    const ended = await copy.command(CHANGES.forget, `conflict:${sealed}`)
    expect(ended.code, ended.stderr).toBe(1)
    await expectNamedFilesToBeThere(copy, sealed)
    expect([...(await rowsOf(copy.output))].sort()).toEqual([...world.rows].sort())
    await expectSettled(copy, world.outcomes('forget', null).slice(0, 1), 'then a run')
  })
})

test('a forget whose list of people cannot be written commits nothing', async () => {
  const world = await worldOf('partition_by: [query]')
  await world.onCopy(async (copy) => {
    const ended = await copy.command(CHANGES.forget, 'eio:rename _state/suppression.next.json')
    expect(ended.code, ended.stderr).toBe(1)
    await expectSettled(copy, world.outcomes('forget', null).slice(0, 1), 'then a run')
  })
})

test('what a forget cannot delete is named, with the fact that rows remain, and the next command deletes it', async () => {
  const world = await worldOf('partition_by: [query]')
  const calls = await world.callsOf('forget')
  const isMove = (call: string): boolean => /^rename _state\/open\./.test(call)
  const moves = calls.flatMap((call, i) => (isMove(call) ? [i] : []))
  const removal = moves.find((i) => /^rmdir credentials/.test(calls[i + 2] ?? ''))!
  await world.onCopy(async (copy) => {
    const { command, output } = copy
    const before = await shardPaths(output)
    const ended = await command(CHANGES.forget, `eio:rename _state/open.#+${removal - moves[0]!}`)
    const named = (await shardPaths(output)).filter((path) => before.includes(path))
    const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
    const [left] = named.filter((path) => !shards.some((each: { path: string }) => each.path === path))
    expect(ended.code, ended.stderr).toBe(1)
    expect(ended.stderr).toContain(
      `these files stay, although the data set no longer has their rows: ${left} (`,
    )
    expect(existsSync(join(output, '_SUCCESS'))).toBe(false)
    await expectSettled(copy, world.outcomes('forget', null).slice(1), 'then a run')
    expect(await shardPaths(output)).not.toContain(left)
  })
})
