import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { failure, problems, read, SMALLEST } from './pipeline-file.ts'

const EMPTY = 'the file is empty; `spillway init` writes one to begin with'
const INVALID = 'not valid YAML:'

test.each([
  ['', '1:1', EMPTY],
  ['# nothing\n', '1:1', EMPTY],
  ['- a\n', '1:1', 'expected a mapping of keys to values, found a list'],
  ['hunter2\n', '1:1', 'expected a mapping of keys to values, found a string (not shown)'],
  ['a: "hunter2\n', '2:1', `${INVALID} a quote, a bracket, a comma or the space after a colon is missing`],
  [
    'a: b\nhunter2\nc: {}\n',
    '2:1',
    `${INVALID} a key must be on one line and be followed by a colon and a value`,
  ],
  ['name: !secret hunter2\n', '1:7', `${INVALID} tags such as !name are not supported`],
  [`${SMALLEST}---\n${SMALLEST}`, '6:1', 'a second document begins here; a pipeline file holds one'],
  ['['.repeat(1_000_000), '1:101', 'nested deeper than 100 levels'],
  ['- '.repeat(1_000_000), '1:1', 'nested deeper than 100 levels'],
])('%.30s is no pipeline', async (text, at, expected) => {
  expect(await problems(text)).toEqual([`p.yaml:${at}: ${expected}`])
})

test.each(['!!binary aGk=', '!!set { a }', '!!timestamp 2024-01-01', '!!omap [a: 1]'])(
  '%s is no value',
  async (value) => {
    expect(await problems(`%YAML 1.1\n---\nname: ${value}\n`)).toEqual([
      'p.yaml:3:7: not valid YAML: tags such as !name are not supported',
    ])
  },
)

test('YAML is read as 1.2 whatever a directive says', async () => {
  expect((await read(`%YAML 1.1\n---\n${SMALLEST.replace('acme\n', 'on\n')}`)).name).toBe('on')
})

test('duplicate keys, at any depth, are reported beside the other problems', async () => {
  expect(await problems(`${SMALLEST}name: b\nload:\n  path: a\n  path: b\n  shard_rows: no\n`)).toEqual([
    'p.yaml:6:1: name: duplicate key',
    'p.yaml:9:3: path: duplicate key',
    'p.yaml:10:15: load.shard_rows: expected an integer from 1 on, found "no"',
  ])
})

test('an alias refers to the last anchor of its name', async () => {
  const text = SMALLEST.replace('[acme.com]', '[&a a.com, *a, &a b.com, *a, c.com]')
  expect((await read(text)).extract.queries.map((query) => 'fqdn' in query && query.fqdn)).toEqual([
    'a.com',
    'b.com',
    'c.com',
  ])
})

test('aliases that contain themselves or multiply are refused', async () => {
  expect(await problems(SMALLEST.replace('[acme.com]', '&a [*a]'))).toContain(
    'p.yaml:5:16: an alias must name an anchor that is complete before it',
  )
  const levels = Array.from({ length: 9 }, (_, i) =>
    i === 0 ? 'k0: &k0 [x, x, x, x, x, x, x, x, x, x]' : `k${i}: &k${i} [${`*k${i - 1}, `.repeat(10)}]`,
  )
  expect(await problems(`${levels.join('\n')}\n`)).toContain(
    'p.yaml:1:1: aliases repeat more than 10000 values',
  )
  const chain = Array.from({ length: 20_000 }, (_, i) => (i === 0 ? '- &k0 [x]' : `- &k${i} [*k${i - 1}]`))
  expect(await problems(`${chain.join('\n')}\n`)).toContainEqual(
    expect.stringMatching(/^p\.yaml:1:1: (?:not valid YAML: nested too deeply|aliases repeat more)/),
  )
})

test('text that is not UTF-8 is refused', async () => {
  const error = await failure(read(Uint8Array.of(0x6e, 0x3a, 0x20, 0xff)))
  expect(error.message).toMatch(/^The pipeline file is not UTF-8 text \(p\.yaml\)\. /)
})

test('a file of more than 16 MB is refused', async () => {
  const error = await failure(read(new Uint8Array(16 * 1024 * 1024 + 1).fill(0x23)))
  expect(error.message).toMatch(/^The pipeline file is larger than 16 MB \(p\.yaml\)\. /)
})

test('a missing file, and a folder, are refused', async () => {
  const cwd = scratchFolder()
  mkdirSync(join(cwd, 'folder'))
  writeFileSync(join(cwd, 'file'), '')
  const messageOf = async (file: string) => (await failure(readPipeline(file, { env: {}, cwd }))).message
  expect(await messageOf('none.yaml')).toMatch(/^The pipeline file does not exist \(none\.yaml\)\. /)
  expect(await messageOf('folder')).toMatch(/^The pipeline file is a directory, not a file \(folder\)\. /)
  expect(await messageOf('file/p.yaml')).toMatch(/^The pipeline file does not exist \(file\/p\.yaml\)\. /)
  expect(await messageOf('a\0b')).toMatch(/^The pipeline file cannot be read/)
})

test('a byte order mark is ignored', async () => {
  expect((await read(`\uFEFF${SMALLEST}`)).name).toBe('acme')
})
