import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { PAGES, ROOT, textOf } from './page.ts'

const FILES = [...PAGES, 'CONTRIBUTING.md', 'SECURITY.md']

const below = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
    name.replaceAll('\\', '/'),
  )
const sources = below('src')
const tests = below('test')
const isBelow = (names: readonly string[], path: string) =>
  names.some((name) => name === path || name.endsWith(`/${path}`))

/** Code of a page: spans between backticks, and drawings, which are blocks without a language. */
const codeOf = (page: string) =>
  [...textOf(page).matchAll(/```\n([^`]+)```|`([^`\n]+)`/g)].map(([, block, span]) => span ?? block ?? '')

/** Names on pages that the repository lacks, as `page: name`. @param names finds the names in a span of code */
const missingOf = (pages: readonly string[], names: (code: string) => readonly string[]) =>
  pages.flatMap((page) => codeOf(page).flatMap((code) => names(code).map((name) => `${page}: ${name}`)))

it('every file and folder of the source that a page names exists', () => {
  const missing = missingOf(FILES, (code) => {
    // From the root of the repository; the suffix may be left out.
    const paths = [...code.matchAll(/(?<![\w./-])(?:src|test|bench|pipelines)\/[\w./-]*\w/g)].map(
      ([path]) => path,
    )
    // Below src/, or by its name alone.
    const files = [...code.matchAll(/(?<![\w./*-])(?:[\w-]+\/)*[\w-]+\.ts\b/g)]
      .map(([path]) => path)
      .filter((path) => !/^(?:src|test|bench)\//.test(path))
    const folder = /^(?:[a-z0-9-]+\/)+$/.exec(code)?.[0].slice(0, -1)
    return [
      ...paths.filter((path) => !isThere(path)),
      ...files.filter((path) => !isBelow(sources, path)),
      ...(folder === undefined || isBelow(sources, folder) || existsSync(join(ROOT, folder)) || isMade(folder)
        ? []
        : [folder]),
    ]
  })
  expect(missing).toEqual([])
})

it('every guarantee has tests, which exist', () => {
  const rows = [...textOf('CONTRIBUTING.md').matchAll(/^\| (\d+\. [^|]+) \| (.*) \|$/gm)]
  const guarantees = [...textOf('docs/guarantees.md').matchAll(/^## (\d+\. .*)$/gm)]
  expect(rows.map(([, guarantee]) => guarantee)).toEqual(guarantees.map(([, title]) => title))
  const named = rows
    .flatMap(([, , tests = '']) => [...tests.matchAll(/`([\w/-]+-[\w/-]+)`/g)])
    .map(([, name = '']) => name)
  expect(named.length).toBeGreaterThan(30)
  const isTest = (name: string) =>
    isThere(name) || ['test.ts', 'long.test.ts'].some((suffix) => isBelow(tests, `${name}.${suffix}`))
  expect(named.filter((name) => !isTest(name))).toEqual([])
})

it('every function and type that a page about the source names exists', () => {
  const pages = PAGES.filter((page) => /architecture|guarantees|threat-model|decisions\//.test(page))
  const source = [...sources.map((name) => join('src', name)), ...tests.map((name) => join('test', name))]
    .filter((name) => name.endsWith('.ts') && !name.endsWith('named-files-exist.test.ts'))
    .map((name) => readFileSync(join(ROOT, name), 'utf8'))
    .join('\n')
  const missing = missingOf(pages, (code) => {
    const name = /^(?:[a-z]+[A-Z]\w*|(?:[A-Z][a-z]+){2,})(?=\(\)$|$)/.exec(code)?.[0]
    return name === undefined || EXTERNAL_NAMES.has(name) || new RegExp(`\\b${name}\\b`).test(source)
      ? []
      : [name]
  })
  expect(missing).toEqual([])
})

/** Names in packages and their configuration. */
const EXTERNAL_NAMES: ReadonlySet<string> = new Set(
  'codeSplitting devDependencies EnvHttpProxyAgent RequestAbortedError'.split(' '),
)

/** The suffix may be left out. */
function isThere(path: string): boolean {
  return ['', '.ts', '.test.ts', '.long.test.ts', '.mjs'].some((suffix) =>
    existsSync(join(ROOT, `${path}${suffix}`)),
  )
}

/** Folders that a build or a run makes. */
function isMade(folder: string): boolean {
  return /^(?:dist|build|output|credentials|reports|_\w+|open|ids|orphans)\b/.test(folder)
}

/** `` [`symbol`](path) ``: a place in the source. */
const LINKS = [...textOf('CONTRIBUTING.md').matchAll(/\[`(\w+)`\]\(([^)#\s]+)\)/g)].map(
  ([, symbol = '', path = '']) => ({ symbol, path }),
)

it.each(LINKS)('$symbol is declared in $path', ({ symbol, path }) => {
  expect(existsSync(join(ROOT, path))).toBe(true)
  expect(readFileSync(join(ROOT, path), 'utf8')).toMatch(
    new RegExp(
      `^(?:export )?(?:async )?(?:const|function|type|class) ${symbol}\\b|^export (?:\\{|type).*\\b${symbol}\\b`,
      'm',
    ),
  )
})

it('every kind of part has its links', () => {
  expect(LINKS.length).toBeGreaterThan(30)
})
