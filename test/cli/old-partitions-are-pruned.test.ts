import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { treeHashes } from '../fault/support.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']

const parts = (until = '2024-05-01', load = {}): PipelineParts => ({
  extract: { domains: DOMAINS, windows: { from: '2024-01-01', until, every: 'month' } },
  load: { format: 'csv', ...load },
})

const DAY_MS = 86_400_000

/** An age that includes partitions that ended on this day, and excludes those of the next day. */
function since(date: string): string {
  return `${Math.floor((Date.now() - Date.parse(`${date}T12:00:00Z`)) / DAY_MS)}d`
}

const MARCH = since('2024-03-01')

async function json(here: Workspace, command: string, ...flags: string[]) {
  const { stdout } = await exits(0, here.call(command, '--json', ...flags))
  return JSON.parse(stdout)
}

const months = (paths: readonly string[]): string[] => [
  ...new Set(paths.map((path) => /import_window=(\d{4}-\d\d)/.exec(path)?.[1] ?? '')),
]

it('old partitions are removed with all their files, and exported again only with --redo', async () => {
  const here = await exportedWorkspace(parts(), { invalidRate: 0.2 })
  const before = await here.manifest()
  const old = before.shards.filter(({ path }) => /import_window=2024-0[12]/.test(path))
  const rows = old.reduce((sum, shard) => sum + shard.rows, 0)
  const quarantined = async () => (await readdir(join(here.output, '_quarantine'))).sort()
  const refused = await quarantined()
  expect(months(old.map(({ path }) => path))).toHaveLength(2)
  expect(refused.some((name) => name.includes('2024-01-01'))).toBe(true)

  const pruned = await exits(0, here.json('prune', '--older-than', MARCH, '--yes'))
  expect(pruned.value).toMatchObject({
    before: expect.stringMatching(/^2024-03-0[12]T\d\d:\d\d:\d\dZ$/),
    ...{ pipeline: 'trial', dry_run: false, partitions: 4, shards: old.length, rows, kept: [] },
    bytes: old.reduce((sum, shard) => sum + shard.bytes, 0),
  })
  expect(months(await shardPaths(here.output))).toEqual(['2024-03', '2024-04'])
  expect(await readdir(join(here.output, 'credentials/query=domain.quillmere.net'))).toHaveLength(2)
  expect(await quarantined()).toEqual(refused.filter((name) => !/~2024-0[12]-01\.\./.test(name)))
  const manifest = await here.manifest()
  expect(manifest.shards).toEqual(before.shards.filter((shard) => !old.includes(shard)))
  expect(manifest.totals.rows).toBe(before.totals.rows - rows)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
  expect(await json(here, 'verify')).toMatchObject({ ok: true })
  // What was removed is named, so that a signature over the manifest covers it.
  const { before: cut, removed, quarantined: left } = pruned.value
  const shards = old.map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  expect(manifest.prunes).toEqual([
    { pruned_at: expect.any(String), before: cut, partitions: 4, rows, quarantined: left, removed, shards },
  ])
  const keys = [...new Set(old.flatMap((shard) => shard.partitions))].sort()
  expect(removed).toMatchObject(keys.map((partition) => ({ partition })))
  expect(manifest.partitions.filter(({ state }) => state === 'pruned')).toHaveLength(4)
  const said = `4 partitions that ended by ${cut.slice(0, 10)} were removed (prune)`
  for (const command of ['verify', 'run'])
    expect((await here.call(command)).stdout.replace(/\s+/g, ' ')).toContain(said)

  // The page covers what is left alone, and says what was removed.
  const { html, figures, reasons } = await summaryPageIn(here.output)
  expect(reasons.at(-1)).toBe(said)
  expect(figures.rows).toBe(manifest.totals.rows.toLocaleString('en'))
  const shown = [...html.matchAll(/title="(2024-\d\d): /g)].map(([, month]) => month)
  expect(shown).toEqual(['2024-03', '2024-04'])

  const status = await json(here, 'status')
  expect(status.totals).toMatchObject({ partitions: 4, done: 4, pending: 0, pruned: 4 })
  expect(status.partitions.map(({ state }: { state: string }) => state).sort()).toEqual(
    [...Array(4).fill('done'), ...Array(4).fill('pruned')].sort(),
  )
  expect((await here.call('status')).stdout).toContain('4 of 4 partitions done, 4 pruned')
  const planned = { total: 4, done: 4, partial: 0, pending: 0, pruned: 4 }
  expect(await json(here, 'plan')).toMatchObject({ partitions: planned, min_requests: 0 })

  const tree = await treeHashes(here.output)
  const again = await json(here, 'prune', '--older-than', MARCH, '--yes')
  expect(again).toMatchObject({ partitions: 0, shards: 0 })
  expect(await treeHashes(here.output)).toEqual(tree)

  await here.write(parts('2024-06-01'))
  const sent = here.searches().length
  expect(await json(here, 'run')).toMatchObject({ partitions: { total: 6, done: 6, pending: 0 } })
  expect(here.searched(sent)).toEqual(['quillmere.net 2024-05-01', 'scatterholt.com 2024-05-01'])

  const key = 'domain.quillmere.net/2024-01-01..2024-02-01'
  expect((await here.call('run', '--redo', key)).code).toBe(0)
  const [redone, former] = [await here.manifest(), before].map(({ shards }) =>
    shards.filter(({ partitions }) => partitions.includes(key)),
  )
  // The same bytes under another name: no path is used twice.
  expect(redone).toEqual(former!.map((shard) => ({ ...shard, path: shard.path.replace('00000', '00001') })))
  expect((await json(here, 'status')).totals).toMatchObject({ partitions: 7, done: 7, pruned: 3 })
  expect(await json(here, 'verify')).toMatchObject({ ok: true })
})

it('load.keep sets the age; the command lists what it would remove, and needs consent', async () => {
  const here = await exportedWorkspace(parts('2024-04-01', { keep: MARCH }))
  await writeFile(join(here.output, '_manifest.sig'), Buffer.alloc(64))
  const tree = await treeHashes(here.output)
  expect(await json(here, 'prune', '--dry-run')).toMatchObject({ dry_run: true, partitions: 4, kept: [] })
  await exits(2, here.call('prune'), /4 partitions: 4 shards with \d+ rows .* would go.*--yes/)
  expect(await treeHashes(here.output)).toEqual(tree)
  const pruned = await exits(0, here.call('prune', '--yes'))
  expect(pruned.stdout).toMatch(/^trial: pruned 4 partitions: 4 shards/)
  expect(pruned.stdout).toMatch(/^ {2}domain\.scatterholt\.com\/2024-01-01\.\.2024-02-01 {2}\d+ rows$/m)
  // The manifest has changed.
  expect(existsSync(join(here.output, '_manifest.sig'))).toBe(false)
})

it.each(some(['query', 'none'], 1))(
  'partitions that share shards stay as long as one of them is not old: partition_by %s',
  async (partition_by) => {
    const here = await exportedWorkspace(parts('2024-04-01', { partition_by }))
    const some = await json(here, 'prune', '--older-than', MARCH, '--yes')
    expect(some).toMatchObject({ partitions: 0, shards: 0, rows: 0 })
    expect(some.kept).toHaveLength(4)
    for (const { reason, with: other } of some.kept)
      expect([reason, other]).toEqual(['shared', expect.stringContaining('2024-03-01..2024-04-01')])
    const dryRun = await here.call('prune', '--older-than', MARCH, '--dry-run')
    expect(dryRun.stdout).toContain('lies in one shard with')
    expect(dryRun.stdout).toContain('load.partition_by')
    expect(await json(here, 'verify')).toMatchObject({ ok: true })

    // Once all are old nothing is left but a shard without rows, as after a run.
    const all = await json(here, 'prune', '--older-than', since('2024-04-01'), '--yes')
    expect(all).toMatchObject({ partitions: 6, kept: [] })
    const { shards } = await here.manifest()
    expect(shards).toMatchObject([{ rows: 0 }])
    expect(await shardPaths(here.output)).toEqual(shards.map(({ path }) => path))
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
    expect(await json(here, 'verify', '--complete')).toMatchObject({ ok: true, complete: true, rows: 0 })
    const sent = here.searches().length
    expect(await json(here, 'run')).toMatchObject({ status: 'complete', requests: 0 })
    expect(here.searches()).toHaveLength(sent)
    expect(await json(here, 'prune', '--older-than', MARCH, '--yes')).toMatchObject({ partitions: 0 })
    expect((await here.manifest()).shards).toEqual(shards)
    expect(await json(here, 'verify')).toMatchObject({ ok: true, shards: 1 })

    // Where it is missing or damaged it is made again, and no row returns.
    const bytes = await readFile(join(here.output, shards[0]!.path))
    const spoilt = bytes.map((byte) => byte ^ 1)
    for (const harm of [rm, (path: string) => writeFile(path, spoilt)]) {
      const former = join(here.output, (await here.manifest()).shards[0]!.path)
      await harm(former)
      await exits(0, here.call('run'))
      const [path = '', ...others] = await shardPaths(here.output)
      expect([others, existsSync(former)]).toEqual([[], false])
      expect(await readFile(join(here.output, path))).toEqual(bytes)
      const verified = await json(here, 'verify', '--complete')
      expect(verified).toMatchObject({ ok: true, complete: true, shards: 1, rows: 0 })
      expect(await json(here, 'run')).toMatchObject({ status: 'complete', requests: 0 })
    }
    expect(here.searches()).toHaveLength(sent)
  },
)

it('unfinished partitions stay; retired ones are removed', async () => {
  const here = await newWorkspace({ ...parts(), extract: { ...parts().extract, page_size: 5 } })
  expect((await here.call('run', '--domain', 'scatterholt.com', '--max-requests', '2')).code).toBe(4)
  const early = await json(here, 'prune', '--older-than', MARCH, '--yes')
  expect(early.partitions).toBe(0)
  expect(early.kept.map(({ reason }: { reason: string }) => reason)).toContain('unfinished')
  expect(await json(here, 'run')).toMatchObject({ status: 'complete' })

  await here.write({ ...parts(), extract: { ...parts().extract, domains: ['quillmere.net'], page_size: 5 } })
  expect(await json(here, 'prune', '--older-than', MARCH, '--yes')).toMatchObject({ partitions: 4, kept: [] })
  // Until a run requests less, nothing is retired.
  expect((await here.manifest()).retired).toEqual([])
  expect(await json(here, 'run')).toMatchObject({ status: 'complete' })
  expect((await here.manifest()).retired).toMatchObject([{ query: 'domain.scatterholt.com', partitions: 2 }])
})

it('wrong usage is exit 2', async () => {
  const here = await exportedWorkspace(parts('2024-03-01'))
  const tree = await treeHashes(here.output)
  for (const [why, ...flags] of [
    ['set load.keep in the file'],
    ['expected <n>d, <n>w, <n>mo or <n>y', '--older-than', '24m'],
    ['domain', '--older-than', '1d', '--domain', 'scatterholt.com'],
  ])
    await exits(2, here.call('prune', '--yes', ...flags), why!)

  expect(await treeHashes(here.output)).toEqual(tree)

  const nothing = await newWorkspace(parts())
  expect(await json(nothing, 'prune', '--older-than', '1d', '--yes')).toMatchObject({ partitions: 0 })
  expect(existsSync(nothing.output)).toBe(false)
})
