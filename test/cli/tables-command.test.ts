import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const parts = (load: PipelineParts['load'] = {}): PipelineParts => ({
  extract: {
    domains: ['scatterholt.com'],
    windows: { from: '2024-01-01', until: '2024-04-01', every: 'month' },
  },
  load: { table_formats: ['iceberg', 'delta'], ...load },
})

async function exported(): Promise<Workspace> {
  const here = await newWorkspace(parts())
  await exits(0, here.run())
  return here
}

/** What `tables` says of both tables, with the rows and shards of the manifest. */
async function expected({ folder, manifest }: Workspace) {
  const { shards } = await manifest()
  const each = { rows: shards.reduce((sum, { rows }) => sum + rows, 0), files: shards.length }
  return [
    { format: 'iceberg', location: `file://${folder}/out/_iceberg`, snapshot: expect.any(Number), ...each },
    { format: 'delta', location: `file://${folder}/out`, snapshot: 0, ...each },
  ]
}

it('tables prints each table with its snapshot, rows and shards, as text and as JSON', async () => {
  const here = await exported()
  const tables = await expected(here)
  const json = await here.json('tables')
  expect(json).toMatchObject({ code: 0, stderr: '' })
  expect(json.value).toEqual({ tables })
  const { tables: found } = json.value as { tables: { snapshot: number }[] }
  const { code, stdout } = await here.call('tables')
  const { rows, files } = tables[0]!
  expect(code).toBe(0)
  expect(stdout.trimEnd().split('\n')).toEqual([
    `iceberg: file://${here.folder}/out/_iceberg, snapshot ${found[0]!.snapshot}: ${files} shards with ${rows} rows`,
    `delta: file://${here.folder}/out, snapshot 0: ${files} shards with ${rows} rows`,
  ])
})

it('tables says so when there are none, and removes those whose formats have gone', async () => {
  const here = await exported()
  await here.write(parts({ table_formats: [] }))
  expect(await here.call('tables')).toMatchObject({
    code: 0,
    stdout: 'no tables: load.table_formats names none\n',
  })
  expect((await here.json('tables')).value).toEqual({ tables: [] })
  for (const name of ['_iceberg', '_delta_log']) expect(existsSync(join(here.output, name))).toBe(false)
})

it('tables says so when nothing is exported yet of which there could be tables', async () => {
  const here = await newWorkspace({ ...parts(), service: { retries: 0 } }, { errorRate: 1 })
  expect((await here.run()).code).toBe(1)
  expect(await here.call('tables')).toMatchObject({
    code: 0,
    stdout: 'no tables: there are no shards yet\n',
  })
  expect((await here.json('verify')).value).toMatchObject({ ok: true, complete: false, problems: [] })
})

it('without code generation Iceberg tables are refused in words, before a request; Delta tables need none', async () => {
  const NODE_OPTIONS = '--disallow-code-generation-from-strings'
  for (const [formats, code] of [
    [['iceberg'], 2],
    [['delta'], 0],
  ] as const) {
    const here = await newWorkspace({ load: { table_formats: [...formats] } })
    Object.assign(here.env, { NODE_OPTIONS })
    for (const command of ['plan', 'run']) {
      const ended = await here.cli(command, 'pipeline.yaml')
      expect(ended.code, ended.stderr).toBe(code)
      if (code === 2) expect(ended.stderr).toMatch(/Iceberg tables need code.*table_formats: \[delta\]/)
    }
    expect(here.searches().length > 0).toBe(code === 0)
  }
})
