import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { place, temporaryFolder } from './support/place.ts'
import { readParquet } from './support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from './support/rows.ts'

const execute = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')

type Packed = { readonly filename: string; readonly files: readonly { readonly path: string }[] }

async function pack(...flags: string[]): Promise<Packed> {
  const { stdout } = await execute('npm', ['pack', '--json', '--silent', '--ignore-scripts', ...flags], {
    cwd: ROOT,
  })
  const [packed] = JSON.parse(stdout) as Packed[]
  return packed!
}

it('holds what users need, and nothing else', async () => {
  const paths = (await pack('--dry-run')).files.map(({ path }) => path)
  expect(paths).toEqual(
    expect.arrayContaining([
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'package.json',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/cli/main.js',
      'dist/cli/decode-worker.js',
      'dist/cli/encode-worker.js',
      'dist/run/cpu/decode-worker.js',
      'dist/run/cpu/encode-worker.js',
      'docs/architecture.md',
      'pipelines/demo.yaml',
      'pipelines/backfill.yaml',
      'pipelines/backfill-domains.txt',
      'pipelines/compliance.yaml',
    ]),
  )
  const others = paths.filter(
    (path) => !/^(?:README\.md|LICENSE|CHANGELOG\.md|package\.json|(?:dist|docs|pipelines)\/)/.test(path),
  )
  expect(others).toEqual([])
  // What an earlier build left behind, of files that are no more; what is bundled has names of its own.
  const stale = paths
    .filter((path) => path.startsWith('dist/') && !path.startsWith('dist/cli/'))
    .filter(
      (path) => !existsSync(join(ROOT, path.replace(/^dist/, 'src').replace(/(?:\.d\.ts|\.js)$/, '.ts'))),
    )
  expect(stale).toEqual([])
})

it('works where it is unpacked: command, worker thread and library', async () => {
  const folder = temporaryFolder()
  const { filename } = await pack('--pack-destination', folder)
  await execute('tar', ['xzf', filename], { cwd: folder })
  const unpacked = join(folder, 'package')
  await symlink(join(ROOT, 'node_modules'), join(unpacked, 'node_modules'))
  const { bin, version } = JSON.parse(await readFile(join(unpacked, 'package.json'), 'utf8'))
  expect((await readFile(join(unpacked, bin.spillway), 'utf8')).split('\n', 1)[0]).toBe('#!/usr/bin/env node')
  const { stdout } = await execute(process.execPath, [join(unpacked, bin.spillway), '--version'])
  expect(stdout.trim()).toBe(version)

  const here = await place({ extract: { domains: ['scatterholt.com'], page_size: 50 } })
  const example = join(here.folder, 'example.mjs')
  await writeFile(
    example,
    `import { readPipeline, readStatus, runOptions, runPipeline, verifyDataSet }
       from ${JSON.stringify(pathToFileURL(join(unpacked, 'dist/index.js')).href)}
     const pipeline = await readPipeline('pipeline.yaml', { env: process.env, cwd: process.cwd() })
     const summary = await runPipeline(pipeline, await runOptions(pipeline))
     const { ok } = await verifyDataSet(pipeline, () => {})
     const status = await readStatus(pipeline, Date.now())
     console.log(JSON.stringify({ status: summary.status, rows: summary.rows, ok, partitions: [...status.partitions()] }))`,
  )
  const ran = await execute(process.execPath, [example], {
    cwd: here.folder,
    env: { ...process.env, ...here.env },
  })
  expect(JSON.parse(ran.stdout)).toMatchObject({
    status: 'complete',
    rows: 150,
    ok: true,
    partitions: [{ key: 'domain.scatterholt.com/all', state: 'done', rows: 150 }],
  })
  expect(
    difference(await readParquet(here.output), expectedOfDomains(here.sandbox, ['scatterholt.com'])),
  ).toEqual(SAME)
})
