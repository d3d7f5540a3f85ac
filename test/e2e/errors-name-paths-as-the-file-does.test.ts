import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const PATHS = [
  ['./results/of it/', './results/of it'],
  ['out', 'out'],
] as const

it.each(some(PATHS, 1))(
  'errors name a path below load.path as the pipeline file gives it: %s',
  async (path, shown) => {
    const here = await newWorkspace({ load: { path } })
    expect((await here.run()).code).toBe(0)
    const output = join(here.folder, path)

    const [shard = ''] = (await readdir(output, { recursive: true })).filter((name) =>
      /part-.*parquet$/.test(name),
    )
    await rm(join(output, shard))
    await expectPath(['run'], `${shown}/${shard}`, 1)

    await writeFile(join(output, '_state/lock.0123456789ab'), 'no lock file')
    await expectPath(['run'], `${shown}/_state/lock.0123456789ab`, 1)
    await rm(join(output, '_state/lock.0123456789ab'))

    const checkpoint = join(output, '_state/checkpoint.jsonl')
    const lines = (await readFile(checkpoint, 'utf8')).split('\n')
    await writeFile(checkpoint, [lines[0], 'no line', ...lines.slice(2)].join('\n'))
    for (const command of ['run', 'status', 'plan', 'check'])
      await expectPath([command], `${shown}/_state/checkpoint.jsonl`, expect.any(Number))
    await truncate(checkpoint)
    await expectPath(['run'], `${shown}/_state/checkpoint.jsonl`, 1)

    const elsewhere = join(here.folder, 'elsewhere')
    await writeFile(elsewhere, 'a file')
    await expectPath(['run', '--output', 'elsewhere'], 'elsewhere', 2)

    async function expectPath(words: readonly string[], where: string, code: unknown): Promise<void> {
      const [command = '', ...flags] = words
      const ended = await here.call(command, ...flags)
      expect(ended.code, ended.stderr).toEqual(code)
      expect(ended.stderr).toMatch(new RegExp(`\\(${where.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}[^)]*\\)`))
    }
  },
)
