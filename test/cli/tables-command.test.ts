import { existsSync } from 'node:fs'
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { deltaShards, icebergShards, metadataOf } from '../open-tables/world.ts'
import { wordsOf, writeInputs } from '../support/command-words.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'
import { threeMonths } from './trial.ts'

const of = (...table_formats: string[]) => threeMonths({ load: { table_formats } })
const BOTH = of('iceberg', 'delta')

async function exported(): Promise<Workspace> {
  const here = await newWorkspace(BOTH)
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

it('tables prints each table with its snapshot, rows and shards, and removes those whose formats have gone', async () => {
  const here = await exported()
  const tables = await expected(here)
  const { code, stderr, value } = await here.json('tables')
  expect({ code, stderr, value }).toEqual({ code: 0, stderr: '', value: { tables } })
  const { stdout } = await exits(0, here.call('tables'))
  const { rows, files } = tables[0]!
  expect(stdout.trimEnd().split('\n')).toEqual([
    `iceberg: file://${here.folder}/out/_iceberg, snapshot ${value.tables[0].snapshot}: ${files} shards with ${rows} rows`,
    `delta: file://${here.folder}/out, snapshot 0: ${files} shards with ${rows} rows`,
  ])

  // No command that changes is content with the path: a file says where they are.
  const folders = () => ['_iceberg', '_delta_log'].filter((name) => existsSync(join(here.output, name)))
  writeInputs(here.folder, ['somebody@scatterholt.com'])
  for (const [name, ...flags] of await wordsOf('change'))
    await exits(2, here.cli(name, 'out', ...flags), 'only the pipeline file says which and where they are')
  expect(folders()).toHaveLength(2)

  await here.write(of())
  const none = await exits(0, here.call('tables'))
  expect(none.stdout).toBe('no tables: load.table_formats names none\n')
  expect((await here.json('tables')).value).toEqual({ tables: [] })
  expect(folders()).toEqual([])
})

it('tables says so when nothing is exported yet of which there could be tables', async () => {
  const here = await newWorkspace({ ...BOTH, service: { retries: 0 } }, { errorRate: 1 })
  expect((await here.run()).code).toBe(1)
  expect(await here.call('tables')).toMatchObject({ code: 0, stdout: 'no tables: there are no shards yet\n' })
  expect((await here.json('verify')).value).toMatchObject({ ok: true, complete: false, problems: [] })
})

/** Changes the text of a file of a table; with a pattern, of the first file whose name fits. */
async function edit({ output }: Workspace, folder: string, name: RegExp, change: (text: string) => string) {
  const found = (await readdir(join(output, folder))).filter((each) => name.test(each)).sort()
  const path = join(output, folder, found.at(-1)!)
  const before = await readFile(path, 'latin1')
  const after = change(before)
  expect(after).not.toBe(before)
  await writeFile(path, after, 'latin1')
}

const LOG = ['_delta_log', /json$/] as const
const METADATA = ['_iceberg/metadata', /metadata\.json$/] as const
const FAULTS = {
  'a number of rows in the log of Delta': [...LOG, (text) => text.replace(/(numRecords\\":)\d+/, '$1700')],
  'a size in the log of Delta': [...LOG, (text) => text.replace(/"size":\d/, '"size":9')],
  'a bound in the log of Delta': [...LOG, (text) => text.replace(/(maxValues.*?)"20(\d\d)-/, '$1"10$2-')],
  'a type in the metadata of Iceberg': [...METADATA, (text) => text.replace('"long"', '"string"')],
  'torn metadata of Iceberg': [...METADATA, () => 'torn'],
  'a torn manifest': ['_iceberg/metadata', /(?<!list)\.avro$/, () => 'torn'],
  'the hint of Iceberg': ['_iceberg/metadata', /hint/, () => ''],
  'a list of manifests': ['_iceberg/metadata', /list\.avro$/, (text) => `${text}x`],
} satisfies Record<string, readonly [string, RegExp, (text: string) => string]>

const MENDS = ['printed', 'run'] as const

it('what differs in a table from what was written is found; what verify prints mends it, and so does a run', async () => {
  const here = await exported()
  const tables = await expected(here)
  const trials = some(Object.entries(FAULTS), 3).flatMap(([fault, given], i) =>
    (THOROUGH || i === 0 ? MENDS : [MENDS[i % 2]!]).map((mend) => [fault, mend, given] as const),
  )
  for (const [fault, mend, [folder, name, change]] of trials) {
    await edit(here, folder, name, change)
    const found = await here.call('verify')
    expect(found.code, fault).toBe(1)
    const words = /^ {2}spillway (tables pipeline\.yaml)$/m.exec(found.stdout)![1]!.split(' ')
    await exits(0, mend === 'run' ? here.run() : here.cli(...words))
    expect((await here.json('verify')).value).toMatchObject({ ok: true, problems: [] })
    expect((await here.json('tables')).value).toMatchObject({ tables })
    const paths = (await here.manifest()).shards.map(({ path }) => path).sort()
    expect(await icebergShards(here.output, await metadataOf(here.output))).toEqual(paths)
    expect(await deltaShards(here.output)).toEqual(paths)
  }
})

it('a commit of another program is told, with the command that makes the table anew', async () => {
  const here = await exported()
  const [first, second] = [1, 2].map((v) => join(here.output, `_iceberg/metadata/v${v}.metadata.json`))
  await cp(first!, second!)
  await writeFile(join(here.output, '_delta_log/_last_checkpoint'), '{}')
  for (const command of ['tables', 'run'])
    await exits(1, here.call(command), /Another program has committed to the table/)
  expect((await exits(1, here.call('verify'))).stdout).toContain('--rebuild`')
  await exits(0, here.call('tables', '--rebuild'))
  await exits(0, here.call('verify'))
})

it('without code generation Iceberg tables are refused in words, before a request; Delta tables need none', async () => {
  const NODE_OPTIONS = '--disallow-code-generation-from-strings'
  const here = await newWorkspace(of('iceberg'), {}, { NODE_OPTIONS })
  for (const command of ['plan', 'run'])
    await exits(2, here.call(command), /Iceberg tables need code.*table_formats: \[delta\]/)
  expect(here.searches()).toEqual([])
  await here.write(of('delta'))
  await exits(0, here.call('run'))
})
