import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { chunksFolder, PACKAGE } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const execute = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
/** A folder in which npm installed the package, when everything is tested; see test/support/installed.ts. */
const INSTALLED = inject('installed') ?? ''

/** Packages that are not bundled: npm installs them beside this one. */
const OUTSIDE: readonly string[] = [
  ...[
    '@aws-sdk/client-s3',
    '@azure/identity',
    '@azure/storage-blob',
    '@duckdb/node-api',
    'bullmq',
    'ioredis',
  ],
  ...['parquetjs-lite', 'pg', 'pg-copy-streams', 'pgpass'],
]

type Packed = { readonly files: readonly { readonly path: string }[] }

async function packedFiles(): Promise<Packed['files']> {
  const words = ['pack', '--json', '--silent', '--ignore-scripts', '--dry-run']
  const [packed] = JSON.parse((await execute('npm', words, { cwd: ROOT })).stdout) as Packed[]
  // Builds of a working copy keep the chunks of earlier ones. `npm pack` does not, but here its script did not run.
  const own = `dist/${chunksFolder(ROOT)}/`
  return packed!.files.filter(({ path }) => !path.startsWith('dist/chunks') || path.startsWith(own))
}

it('holds what users need, and nothing else', async () => {
  const chunks = chunksFolder(ROOT)
  const paths = (await packedFiles()).map(({ path }) => path)
  const entries = ['THIRD-PARTY-NOTICES.txt', 'cli/main.js', 'index.d.ts', 'index.js'].map((n) => `dist/${n}`)
  const needed = [
    ...['README.md', 'LICENSE', 'CHANGELOG.md', 'package.json', 'docs/architecture.md', ...entries],
    ...['demo.yaml', 'backfill.yaml', 'backfill-domains.txt', 'compliance.yaml'].map((n) => `pipelines/${n}`),
    ...[`dist/${chunks}/encoder-build.txt`, `dist/${chunks}/item-walker.wasm`],
  ]
  expect(paths).toEqual(expect.arrayContaining(needed))
  const others = paths.filter(
    (path) => !/^(?:README\.md|LICENSE|CHANGELOG\.md|package\.json|(?:dist|docs|pipelines)\/)/.test(path),
  )
  expect(others).toEqual([])
  // Command and library share the chunks. Any other file would be a duplicate or a remainder of an earlier build.
  const built = paths.filter((path) => path.startsWith('dist/') && !path.startsWith('dist/chunks-'))
  expect(built.sort()).toEqual(entries)
  expect(paths.length).toBeLessThan(200)
})

it('has every package once: bundled, or installed beside it', async () => {
  const { dependencies, optionalDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  )
  const beside = Object.keys({ ...dependencies, ...optionalDependencies })
  expect(beside.sort()).toEqual([...OUTSIDE].sort())
})

it('takes less than 10 MB without what is optional, as the page about installing says', async () => {
  expect(await readFile(join(ROOT, 'docs/install.md'), 'utf8')).toContain('Spillway takes less than 10 MB')
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'))
  const needed = Object.entries<Readonly<Record<string, unknown>>>(packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== '' && !(dev || optional || devOptional))
    .flatMap(([path]) => readdirSync(join(ROOT, path), { recursive: true }).map((name) => `${path}/${name}`))
  const paths = [...(await packedFiles()).map(({ path }) => path), ...needed]
  const bytes = paths.reduce((sum, path) => sum + statSync(join(ROOT, path)).size, 0)
  expect(bytes).toBeGreaterThan(4e6)
  expect(bytes).toBeLessThan(10e6)
})

it('the built command is executable, as `npm link` needs it', async () => {
  // `npm link` makes a link to this file and does not set its mode.
  const { stdout } = await execute(join(ROOT, 'dist/cli/main.js'), ['--version'])
  expect(stdout).toMatch(/^\d+\.\d+\.\d+/)
})

it('has the licence of every package that it bundles', async () => {
  const notices = await readFile(join(PACKAGE, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8')
  const [, ...entries] = notices.split(/^={80}$/m)
  const heads = entries.map((entry) => /^(\S+) [\d.]+ \(.+\)$/m.exec(entry))
  const names = heads.map((head) => head?.[1])
  // Two versions of one package are two packages.
  expect(new Set(heads.map((head) => head?.[0])).size).toBe(heads.length)
  // Imports of the sources that are bundled, and their own dependencies.
  const bundled = importedPackages().filter((name) => !OUTSIDE.includes(name))
  expect(bundled).toEqual(expect.arrayContaining(['zod', 'undici', 'yargs', 'hyparquet']))
  expect(names).toEqual(expect.arrayContaining(bundled))
  expect(names).toEqual(expect.arrayContaining(['yargs-parser', 'cliui']))
  for (const [index, entry] of entries.entries()) {
    expect(entry, names[index]).toMatch(/Copyright/i)
    expect(entry, names[index]).toMatch(/Permission|Redistribution|Apache License/i)
  }
})

function importedPackages(): readonly string[] {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
  const imported = /(?:^(?:import|export|\}) .*from |await import\()'((?:@[^/']+\/)?[^./'][^/']*)[^']*'/gm
  const names = sources.flatMap((text) => [...text.matchAll(imported)].map(([, name]) => name!))
  return [...new Set(names)].filter((name) => !name.startsWith('node:'))
}

it('a clean clone installs without a package that wants a newer Node.js', async () => {
  const folder = scratchFolder()
  for (const name of ['package.json', 'package-lock.json']) await cp(join(ROOT, name), join(folder, name))
  const words = ['ci', '--dry-run', '--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  const { stdout, stderr } = await execute('npm', words, { cwd: folder })
  expect(stdout).toContain('added')
  expect(stderr).not.toContain('EBADENGINE')
})

it('works where npm installed it: the command, by its name', async () => {
  const here = await newWorkspace({ extract: { domains: ['scatterholt.com'], page_size: 50 } })
  const command = join(INSTALLED, 'node_modules/.bin/spillway')
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  expect((await execute(command, ['--version'])).stdout.trim()).toBe(version)

  const options = { cwd: here.folder, env: { ...process.env, ...here.env } }
  const { stdout } = await execute(command, ['run', 'pipeline.yaml', '--json'], options)
  expect(JSON.parse(stdout)).toMatchObject({ status: 'complete', rows: 150 })
  await here.expectRows(['scatterholt.com'])
})

it('its types need those of no other package', async () => {
  const types = await readFile(join(PACKAGE, 'dist/index.d.ts'), 'utf8')
  const imports = types.matchAll(/(?:from|import\()\s*'([^']+)'|reference types="([^"]+)"/g)
  const names = [...imports].map(([, from, types]) => from ?? types!)
  expect(names.filter((name) => !/^node(?::|$)/.test(name))).toEqual([])
})
