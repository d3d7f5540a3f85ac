import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unpackTar } from 'modern-tar'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { writeKeyPair } from '../support/key-pair.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import type { Workspace } from '../support/workspace.ts'
import { trial } from './trial.ts'

const NAMES = [
  ...['README.txt', 'SHA256SUMS', '_SUCCESS', '_manifest.json', '_manifest.sig', '_report.html'],
  ...['public-key.pem', 'settings.json'],
]
const MASK_KEY = 'a mask key that nobody is to find anywhere'

const sign = (here: Workspace) => exits(0, here.call('sign', '--key', 'key.pem'))

/** A data set with keys and a report; nothing is signed yet. */
async function exported(): Promise<Workspace> {
  const here = await trial({ transform: { secret: 'hmac' } }, {}, { SPILLWAY_MASK_KEY: MASK_KEY })
  writeKeyPair(here.folder)
  await exits(0, here.call('run'))
  return here
}

async function signed(): Promise<Workspace> {
  const here = await exported()
  await sign(here)
  return here
}

/** Packs the evidence. @returns its files by their names */
async function packed(here: Workspace, ...flags: string[]): Promise<ReadonlyMap<string, Buffer>> {
  await exits(0, here.call('evidence', '--output', 'acme.tar', ...flags))
  return filesOf(join(here.folder, 'acme.tar'))
}

async function filesOf(path: string): Promise<ReadonlyMap<string, Buffer>> {
  const entries = await unpackTar(await readFile(path))
  return new Map(entries.map(({ header, data }) => [header.name, Buffer.from(data ?? [])]))
}

it('contains all evidence, no rows and no secrets, and has the same bytes every time', async () => {
  const here = await signed()
  const { value } = await exits(0, here.json('evidence', '--output', 'acme.tar', '--key', 'pub.pem'))
  const path = join(here.folder, 'acme.tar')
  const tar = await readFile(path)
  const manifest = await here.manifest()
  const sha256 = createHash('sha256').update(tar).digest('hex')
  expect(value).toEqual({
    ...{ pipeline: 'trial', output: path, bytes: tar.length, sha256, files: NAMES },
    ...{ shards: 3, rows: manifest.totals.rows, complete: true, covers: manifest.covers },
  })
  expect((await stat(path)).mode & 0o777).toBe(0o600)

  const finished = Math.floor(Date.parse(manifest.runs.at(-1)!.finished_at!) / 1000)
  const entries = await unpackTar(tar)
  expect(entries.map(({ header }) => header.name)).toEqual(NAMES)
  for (const { header } of entries) {
    expect(header).toMatchObject({ type: 'file', mode: 0o644, uid: 0, gid: 0 })
    expect(header.mtime?.getTime()).toBe(finished * 1000)
    expect([header.uname ?? '', header.gname ?? '']).toEqual(['', ''])
  }
  const files = await filesOf(path)
  for (const name of ['_manifest.json', '_manifest.sig', '_SUCCESS', '_report.html'])
    expect(files.get(name), name).toEqual(await readFile(join(here.output, name)))
  expect(files.get('public-key.pem')).toEqual(await readFile(join(here.folder, 'pub.pem')))
  // A reader sees the settings, and can check them against the digest in the manifest.
  const settings = files.get('settings.json')!
  expect(createHash('sha256').update(settings).digest('hex')).toBe(manifest.config_digest)
  expect(JSON.parse(settings.toString())).toContainEqual(['transform.secret', 'hmac'])
  for (const secret of [MASK_KEY, here.env.SPILLWAY_TOKEN!, 'PRIVATE KEY'])
    expect(tar.includes(secret)).toBe(false)

  // The second archive replaces the first.
  await packed(here, '--key', 'pub.pem')
  expect(await readFile(path)).toEqual(tar)
})

const TOOLS = ['openssl', 'tar', 'sha256sum', 'sed', 'diff'].every(
  (tool) => spawnSync(tool, ['--version']).error === undefined,
)

/** Runs the commands of the README, which are its indented lines. */
function follow(readme: string, cwd: string, data: string) {
  const lines = readme.replace(/ \\\n +/g, ' ').split('\n')
  const commands = lines.filter((line) => /^ {3}(?:openssl|sed|\(cd|find|sha256sum) /.test(line))
  return commands.map((line) => {
    const { status, stdout } = spawnSync('sh', ['-c', line.replace('DATA', `'${data}'`)], { cwd })
    return { status, stdout: stdout.toString().trim() }
  })
}

it.skipIf(!TOOLS)(
  'an auditor who follows the README accepts an intact export, and rejects a changed one',
  async () => {
    const here = await signed()
    await packed(here, '--key', 'pub.pem')
    const cwd = scratchFolder()
    const unpacked = spawnSync('tar', ['-xf', join(here.folder, 'acme.tar'), '-C', cwd])
    expect(unpacked.status, String(unpacked.stderr)).toBe(0)
    const readme = await readFile(join(cwd, 'README.txt'), 'utf8')
    expect(readme).toMatch(/^[\x20-\x7e\n]*$/)
    expect(readme.split('\n').filter((line) => line.length > 80)).toEqual([])
    const { config_digest } = await here.manifest()
    const good = follow(readme, cwd, here.output)
    const [signature, key, list, shards, count, settings] = good
    expect(good.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0, 0])
    expect(signature!.stdout).toBe('Signature Verified Successfully')
    const digest = key!.stdout.split(' ')[0]!
    expect(readme).toContain(digest)
    expect([list!.stdout, shards!.stdout, count!.stdout]).toEqual(['', '', '3'])
    expect(settings!.stdout).toContain(config_digest)

    const [first, second] = (await shardPaths(here.output)) as [string, string]
    await copyFile(join(here.output, first), join(here.output, second))
    const sums = join(cwd, 'SHA256SUMS')
    await writeFile(sums, (await readFile(sums, 'utf8')).replace(/^./, 'x'))
    const manifest = join(cwd, '_manifest.json')
    await writeFile(manifest, `${await readFile(manifest, 'utf8')} `)
    expect(follow(readme, cwd, here.output).map(({ status }) => status)).toEqual([1, 0, 1, 1, 0, 0])
  },
)

it('without a key, it says which key to request, and contains none', async () => {
  const here = await signed()
  await rm(join(here.output, '_SUCCESS'))
  const files = await packed(here)
  const missing = ['_SUCCESS', 'public-key.pem']
  expect([...files.keys()]).toEqual(NAMES.filter((name) => !missing.includes(name)))
  expect(files.get('README.txt')!.toString()).toContain('pub.pem is the public key of whoever signed')
})

it('the summary page is made anew: what somebody wrote into the file is not packed', async () => {
  const here = await signed()
  const report = join(here.output, '_report.html')
  const page = await readFile(report, 'utf8')
  const table = '<table><tr><td>hunter2</td></tr></table></main>'
  for (const changed of [page.replace('</main>', table), 'id,hash\n1,hunter2\n', '', null]) {
    await (changed === null ? rm(report) : writeFile(report, changed))
    expect((await packed(here)).get('_report.html')!.toString()).toBe(page)
  }
})

it('an export without evidence is not packed, and no archive lies in the data set', async () => {
  const here = await exported()
  const refuses = (code: number, why: string, ...flags: string[]) =>
    exits(code, here.call('evidence', ...flags), why)
  const TO = ['--output', 'acme.tar']
  await refuses(2, 'is not signed', ...TO)
  await sign(here)
  await refuses(2, 'holds a private key', ...TO, '--key', 'key.pem')
  writeKeyPair(here.folder)
  await refuses(1, 'does not fit the manifest under this key', ...TO, '--key', 'pub.pem')
  for (const path of ['out/acme.tar', 'out/_state/acme.tar', 'out/_evidence.tar', 'out/_SUCCESS'])
    await refuses(2, 'folder of the data set', '--output', path)

  const manifest = join(here.output, '_manifest.json')
  await writeFile(manifest, (await readFile(manifest, 'utf8')).replace('"retries": 0', '"retries": 1'))
  await refuses(1, 'does not match the checkpoint', ...TO)
  await expect(stat(join(here.folder, 'acme.tar'))).rejects.toThrow()
})
