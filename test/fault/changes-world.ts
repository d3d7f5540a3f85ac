import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { type Sandbox, startSandbox } from '../support/sandbox.ts'
import { withDiskFault } from './disk-fault-here.ts'
import { rowsOf } from './rows.ts'
import { diskFault } from './support.ts'

/** How a data set is laid out. */
export const LAYOUTS = {
  'partition_by: [query]': 'partition_by: [query], shard_rows: 15',
  'with tables':
    'partition_by: [query], format: parquet, table_formats: [iceberg, delta], table_location: s3://lake/changes',
  'partition_by: none': 'partition_by: none, shard_rows: 20',
  'partition_by: [query, window]': 'partition_by: [query, window]',
} as const
export type Layout = keyof typeof LAYOUTS

/** Every command that changes a data set, by its name. */
export const CHANGES = {
  redo: ['run', '--redo', '*'],
  'redo of a part': ['run', '--redo', 'domain.quillmere.net/*'],
  prune: ['prune', '--older-than', '12mo', '--yes'],
  forget: ['forget', '--identities', 'people.txt', '--yes'],
  compact: ['compact', '--min-shards', '2'],
} as const
export type Change = keyof typeof CHANGES

export type Copy = {
  /** The folder of the data set. */
  readonly output: string
  /** @param fault for disk-fault.mjs */
  command(words: readonly string[], fault?: string): Promise<Ended>
}

type Ended = {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly calls: readonly string[]
}

/** Copies of one finished export, which commands change in this process. */
export class ChangesWorld {
  /** Its rows, and those without the people of `people.txt`. */
  readonly rows: ReadonlyMap<string, number>
  readonly others: ReadonlyMap<string, number>
  readonly #base: string
  readonly #sandbox: Sandbox

  private constructor(base: string, sandbox: Sandbox, rows: ReadonlyMap<string, number>, person: string) {
    this.#base = base
    this.#sandbox = sandbox
    this.rows = rows
    this.others = new Map([...rows].filter(([row]) => !row.includes(person)))
  }

  static async make(layout: Layout): Promise<ChangesWorld> {
    const sandbox = await startSandbox({ requestsPerSecond: 0, records: 150, seed: 'changes', nastyRate: 0 })
    const base = await mkdtemp(join(tmpdir(), 'spillway-changes-'))
    const load = LAYOUTS[layout]
    const format = load.includes('format:') ? '' : 'format: csv, '
    await writeFile(
      join(base, 'p.yaml'),
      `name: changes
service: { base_url: '${sandbox.baseUrl}', requests_per_second: 1000 }
extract:
  domains: [scatterholt.com, quillmere.net]
  windows: { from: 2024-01-01, until: 2024-03-01, every: month }
  page_size: 20
load: { ${format}${load}, path: out }
`,
    )
    const first = new ChangesWorld(base, sandbox, new Map(), '')
    await writeFile(join(base, 'people.txt'), 'nobody@nowhere.example\n')
    expect((await first.#command(base, ['run'])).code).toBe(0)
    const rows = await rowsOf(join(base, 'out'))
    const [person = ''] = /[\w.]+@[a-z.]+/.exec([...rows.keys()].sort().join('\n')) ?? []
    await writeFile(join(base, 'people.txt'), `${person}\n`)
    const world = new ChangesWorld(base, sandbox, rows, person)
    expect(world.others.size).toBeLessThan(rows.size)
    return world
  }

  async close(): Promise<void> {
    await this.#sandbox.close()
    await rm(this.#base, { recursive: true, force: true })
  }

  async onCopy<T>(work: (copy: Copy) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(tmpdir(), 'spillway-change-'))
    try {
      await cp(this.#base, folder, { recursive: true })
      const command = (words: readonly string[], fault?: string) => this.#command(folder, words, fault)
      return await work({ output: join(folder, 'out'), command })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** The calls that change files, of a command that nothing disturbs. */
  async callsOf(change: Change): Promise<readonly string[]> {
    return this.onCopy(async ({ command }) => {
      const ended = await command(CHANGES[change], 'count')
      expect(ended.code, ended.stderr).toBe(0)
      return ended.calls
    })
  }

  /**
   * What rows may be left, each as one of these: the first change was carried out or not, the second was. A redo brings
   * back what was pruned of the partitions that it names.
   */
  outcomes(perhaps: readonly Change[], surely: readonly Change[]): readonly ReadonlyMap<string, number>[] {
    return [surely, [...perhaps, ...surely]].map((done) => {
      const rows = done.includes('forget') ? this.others : this.rows
      const again =
        done.indexOf('prune') < 0
          ? 'redo'
          : done.slice(done.indexOf('prune')).find((each) => /redo/.test(each))
      if (again === 'redo') return rows
      const isBack = (row: string) => again !== undefined && row.includes('"quillmere.net"')
      return new Map([...rows].filter(([row]) => isBack(row)))
    })
  }

  async #command(folder: string, [name = '', ...flags]: readonly string[], fault = 'none'): Promise<Ended> {
    const output = join(folder, 'out')
    const env = { SPILLWAY_TOKEN: this.#sandbox.token }
    const work = () => inThisProcess([name, 'p.yaml', ...flags], folder, env)
    if (fault === 'none') return { ...(await work()), calls: [] }
    const { result, calls } = await withDiskFault(diskFault(output, fault), work)
    // As after a kill: its process is this one, so its lock would count.
    if (fault !== 'count') {
      for (const left of await readdir(join(output, '_state')))
        if (/^(?:lock|open)\./.test(left)) await rm(join(output, '_state', left), { recursive: true })
    }
    return { ...result, calls }
  }
}

/** Whoever reads the manifest finds every file, and `_SUCCESS` stands only beside whole ones. */
export async function expectNamedFilesToBeThere(output: string, about: string): Promise<void> {
  const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  for (const { path, bytes } of shards) {
    const size = (await readFile(join(output, path)).catch(() => null))?.length ?? null
    expect([path, size], about).toEqual([path, bytes])
  }
}

/** A plain run brings everything to its end. */
export async function expectSettled(
  { output, command }: Copy,
  outcomes: readonly ReadonlyMap<string, number>[],
  about: string,
): Promise<void> {
  const last = await command(['run'])
  expect(last.code, `${about}\n${last.stderr}`).toBe(0)
  const rows = await rowsOf(output)
  const text = (all: ReadonlyMap<string, number>) => JSON.stringify([...all].sort())
  const isOne = outcomes.some((outcome) => text(outcome) === text(rows))
  if (!isOne) expect(rows, about).toEqual(outcomes[0])
  const verified = await command(['verify', '--complete', '--json'])
  expect(JSON.parse(verified.stdout), about).toMatchObject({ ok: true, complete: true, problems: [] })
  expect(await readdir(join(output, '_state/sealed')).catch(() => []), about).toEqual([])
}
