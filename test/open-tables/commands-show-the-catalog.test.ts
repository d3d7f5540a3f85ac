import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { carryOut } from '../support/in-this-process.ts'
import { exits, runCli } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { cataloged } from './cataloged.ts'
import type { RestCatalog } from './rest-catalog.ts'
import { itemsOf } from './world.ts'

async function dataSet() {
  const { world, catalog } = await cataloged({ table: undefined }, itemsOf('2024-01-05', '2024-02-10'))
  world.until = '2024-02-01'
  const write = () => writeFile(join(world.folder, 'p.yaml'), JSON.stringify(world.settings()))
  const command = async ([name = '', ...flags]: readonly string[], env = world.env) => {
    await write()
    return carryOut({ args: [name, 'p.yaml', ...flags], env, cwd: world.folder })
  }
  return { world, catalog, write, command, cwd: world.folder }
}

/** Commands that only look, and their exit codes where the catalog is not in line. */
const SHOWS = [['status', 0] as const, ['verify', 1] as const]

it('check, tables, status and verify tell of the catalog, with the exit codes of a run', async () => {
  const { world, catalog, command, cwd } = await dataSet()
  await writeFile(join(cwd, 'people'), 'person-1@scatterholt.com\n')
  await exits(2, command(['check'], { SPILLWAY_TOKEN: 'token' }), 'CATALOG_TOKEN')
  await exits(2, command(['run'], { SPILLWAY_TOKEN: 'token' }), 'CATALOG_TOKEN')
  expect((await exits(0, command(['check']))).stdout).toMatch(
    /ok {2}catalog +catalog: leaks\.acme not there yet/,
  )
  await exits(0, command(['run']))
  const { location } = catalog.table()!
  const shown = { table: 'leaks.acme', metadata_location: location, in_line: true }
  const json = async (...args: string[]) => JSON.parse((await exits(0, command(args))).stdout)
  expect(await json('tables', '--json')).toMatchObject({ tables: [{ format: 'iceberg' }], catalog: shown })
  expect(await json('status', '--json')).toMatchObject({ catalog: shown })
  expect(await json('verify', '--json')).toMatchObject({ ok: true, catalog: shown })
  // What only requests need may be unset.
  const unset = await exits(0, command(['verify', '--json'], {}), 'CATALOG_TOKEN is not set')
  expect(JSON.parse(unset.stdout)).toMatchObject({ ok: true, catalog: { in_line: null } })
  expect((await exits(0, command(['status'], {}))).stdout).toContain('CATALOG_TOKEN is not set')

  world.until = '2024-03-01'
  catalog.overwrite = 406
  const failed = await exits(1, command(['run', '--json']), 'The rows are safe')
  expect(JSON.parse(failed.stdout)).toMatchObject({ rows: 1, partitions: { done: 2, failed: 0 } })
  const behind = await exits(1, command(['tables', '--json']), 'The rows are safe')
  expect(JSON.parse(behind.stdout)).toMatchObject({ catalog: { table: 'leaks.acme', in_line: false } })
  catalog.overwrite = null
  expect((await exits(0, command(['status']))).stdout).toMatch(/catalog: leaks\.acme BEHIND: it shows .*v1\./)
  const verified = await exits(1, command(['verify']))
  expect(verified.stdout).toMatch(/the catalog is BEHIND.*files are intact/is)
  expect(verified.stdout).toContain('spillway tables p.yaml')
  expect(await json('tables', '--json')).toMatchObject({ catalog: { in_line: true } })
  await exits(0, command(['verify']))
  catalog.onRequest = () => 503
  expect(await json('status', '--json')).toMatchObject({ catalog: { in_line: false } })
  catalog.onRequest = () => null

  const others = join(cwd, 'others.metadata.json')
  const metadata = JSON.parse(await readFile(fileURLToPath(catalog.table()!.location), 'utf8'))
  await writeFile(others, JSON.stringify({ ...metadata, 'table-uuid': 'another' }))
  catalog.tables.set('leaks.acme', { location: `file://${others}`, uuid: 'another' })
  const sent = world.service.received.length
  catalog.requests.length = 0
  for (const name of ['run', 'check', 'tables', 'forget']) {
    const words = name === 'forget' ? ['forget', '--yes', '--identities', 'people'] : [name]
    await exits(2, command(words), /leaks\.acme in the catalog is another's .*load\.catalog/s)
    if (name === 'run') expect(world.service.received).toHaveLength(sent)
  }
  expect(catalog.requests.filter((line) => !line.startsWith('GET '))).toEqual([])
  for (const [name, code] of SHOWS) {
    const { stdout } = await exits(code, command([name]))
    expect(stdout).toMatch(/another's.*Choose another load\.catalog\.table/s)
    expect(stdout).not.toMatch(/`tables` brings|spillway tables p/)
  }
  expect(catalog.table()!.location).toBe(`file://${others}`)
  catalog.tokens = new Set()
  for (const name of ['run', 'check']) await exits(3, command([name]), /load\.catalog/)
  for (const line of catalog.received)
    expect(line.includes('SPILLWAY') || line.includes('"token"')).toBe(false)
})

const ofAnotherApi = (line: string, body: object) =>
  line.includes('/config') ? { defaultBranch: 'main' } : body

it.each<[name: string, code: number, says: RegExp, settings: Partial<RestCatalog>]>([
  ['of nothing', 2, /The catalog responds with 404/, { onRequest: () => 404 }],
  ['of another API', 2, /No Iceberg REST catalog/, { onResponse: ofAnotherApi }],
  ['of a web page', 1, /The response is no JSON/, { onResponse: () => '<!doctype html>' }],
  ['without the warehouse', 2, /Unknown warehouse/, { warehouse: 'other' }],
  ['of any warehouse', 1, /The catalog responds with 404/, { configuresAny: true, warehouse: 'other' }],
])('an address %s is refused by check, and by a run before any request', async (_, code, says, settings) => {
  const { world, catalog, command } = await dataSet()
  Object.assign(catalog, settings)
  const { stdout } = await exits(code, command(['check']), says)
  expect(stdout).toMatch(/no {2}catalog/)
  const sent = world.service.received.length
  await exits(code, command(['run']), says)
  expect(world.service.received).toHaveLength(sent)
})

it.each(['absent', 'metadata_location', 'empty'])(
  'a server that does not say what it shows (%s) is told of, and not to drop the table',
  async (name) => {
    const { catalog, command } = await dataSet()
    catalog.onResponse = (_, body) => {
      const { 'metadata-location': location, ...others } = body as Record<string, unknown>
      if (location === undefined || name === 'absent') return others
      return { ...others, ...(name === 'empty' ? { 'metadata-location': '' } : { [name]: location }) }
    }
    await exits(1, command(['run']), /does not say which metadata .* has no metadata-location/)
    for (const words of [['check'], ['tables'], ['run']])
      expect((await exits(1, command(words), 'does not say')).stderr).not.toContain('drop')
    for (const [name, code] of SHOWS)
      expect((await exits(code, command([name]))).stdout).toMatch(/does not say .*leave out load\.catalog/s)
    catalog.onResponse = (_, body) => body
    await exits(0, command(['run']))
    await exits(0, command(['verify']))
  },
)

it('a kill at any request to the catalog leaves what the next command brings in line', async () => {
  const faults = ['refused', 'lost'] as const
  for (let at = 0, reached = true; reached; at += THOROUGH ? 1 : 5) {
    const some = THOROUGH ? faults : [faults[at % 4 < 2 ? 0 : 1]!]
    const ended = await Promise.all(some.map((fault) => killedAt(at, fault)))
    reached = ended.every((isKilled) => isKilled)
  }
})

/** @returns whether the run came to that request */
async function killedAt(at: number, fault: 'refused' | 'lost'): Promise<boolean> {
  const { world, catalog, write, command, cwd } = await dataSet()
  // The first run registers the table, the second one repoints it.
  if (at % 2 === 1) await exits(0, command(['run']))
  world.until = '2024-03-01'
  await write()
  catalog.requests.length = 0
  let kill = (_signal: NodeJS.Signals): void => {}
  catalog.onRequest = (_, index) => {
    if (index !== at) return null
    kill('SIGKILL')
    return fault
  }
  const onStart = (stop: typeof kill): void => {
    kill = stop
  }
  const { signal, code } = await runCli({ args: ['run', 'p.yaml'], env: world.env, cwd, onStart })
  const isKilled = signal === 'SIGKILL'
  if (!isKilled) expect(code).toBe(0)
  catalog.onRequest = () => null
  await exits(0, command(['run']))
  expect(JSON.parse((await exits(0, command(['tables', '--json']))).stdout)).toMatchObject({
    tables: [{ rows: 2 }],
    catalog: { in_line: true },
  })
  await exits(0, command(['verify', '--complete']))
  return isKilled
}
