import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'

/** What each folder of `src` imports, as docs/architecture.md says ("Who imports whom"). */
const IMPORTS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  sandbox: [],
  package: [],
  rows: ['core'],
  ...Object.fromEntries(
    ['pipeline', 'http', 'transform', 'state', 'threads', 'bucket'].map((stage) => [stage, ['core', 'rows']]),
  ),
  load: ['core', 'rows', 'state'],
  extract: ['core', 'http', 'rows'],
  'open-tables': ['core', 'http', 'rows'],
  disk: ['core', 'threads'],
  s3: ['bucket', 'core', 'http'],
  azure: ['bucket', 'core'],
  summary: ['core', 'rows', 'state'],
  warehouse: ['core', 'rows', 'state'],
  cluster: ['core', 'data-set', 'run', 'warehouse'],
} // biome-ignore format: a table

/** They connect the others, or are on top. */
const ON_TOP = ['data-set', 'run', 'cli', 'index.ts', 'library.ts', 'run-options.ts']

const PAST_THE_INDEX: string[] = []

const ROOT = join(import.meta.dirname, '../..')
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => join('src', path))
const folderOf = (path: string): string => path.split('/')[1]!

const imports = sources.flatMap((from) => {
  const text = readFileSync(join(ROOT, from), 'utf8')
  return [...text.matchAll(/(?:from|import\() ?'(\.[^']+)'/g)]
    .map(([, path]) => ({ from, to: normalize(join(dirname(from), path!)) }))
    .filter(({ to }) => folderOf(to) !== folderOf(from))
})

test('no folder imports what the architecture does not let it import', () => {
  expect(imports.length).toBeGreaterThan(500)
  const wrong = imports.filter(({ from, to }) => {
    const folder = folderOf(from)
    return !ON_TOP.includes(folder) && !IMPORTS[folder]?.includes(folderOf(to))
  })
  expect(wrong).toEqual([])
  const above = (from: string) => ON_TOP.slice(ON_TOP.indexOf(from) + 1)
  for (const { from, to } of imports.filter(({ from }) => ['data-set', 'run'].includes(folderOf(from))))
    expect(above(folderOf(from)), `${from} imports ${to}`).not.toContain(folderOf(to))
  // What looks after a data set that is there needs no service.
  expect(
    imports.filter(({ from, to }) => folderOf(from) === 'data-set' && folderOf(to) === 'extract'),
  ).toEqual([])
})

test('no folder imports past the index.ts of another', () => {
  const past = imports.filter(({ to }) => !to.endsWith('/index.ts') && to.split('/').length > 2)
  expect(past.map(({ from, to }) => `${from} imports ${to}`)).toEqual(PAST_THE_INDEX)
})

test('no file imports itself by way of others, not even for types', () => {
  const importsOf = new Map(
    sources.map((from) => {
      const text = readFileSync(join(ROOT, from), 'utf8')
      const paths = [...text.matchAll(/^(?:import|export)\b[^;]*? from '(\.[^']+)'/gms)]
      return [from, paths.map(([, path]) => normalize(join(dirname(from), path!)))]
    }),
  )
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    done.add(file)
    for (const next of importsOf.get(file) ?? []) visit(next, [...way, file])
  }
  for (const file of sources) visit(file, [])
  expect(circles).toEqual([])
})
