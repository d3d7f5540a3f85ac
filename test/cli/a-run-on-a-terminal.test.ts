import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { cutTo, padTo, widthOf } from '../../src/cli/terminal/screen.ts'
import {
  bytes,
  duration,
  plainJson,
  plainLine,
  plainText,
  roughly,
  stopwatch,
} from '../../src/cli/terminal/text.ts'
import { shellWord } from '../../src/core/index.ts'
import { CLI } from '../support/run-cli.ts'
import { type Environment, PIPELINE } from '../support/workspace.ts'
import { ONE_SLOT, trial } from './trial.ts'

const hasResponse = (screen: string): boolean => screen.includes('2 rows')
const COLOUR = /\x1b\[[\d;]*m/

const hasTerminals = /util-linux/.test(spawnSync('script', ['--version']).stdout?.toString() ?? '')

/** Runs the built command on a terminal of so many columns. @param onScreen may type something in */
async function onTerminal(
  columns: number,
  cwd: string,
  env: Environment,
  onScreen: (screen: string, type: (text: string) => void) => void = () => {},
) {
  const command = `stty cols ${columns} rows 24; exec '${process.execPath}' '${CLI}' run ${PIPELINE}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const screens: string[] = []
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text
    screens.push(shown(written))
    onScreen(shown(written), (keys) => child.stdin.write(keys))
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { screens, written, code }
}

/** What a terminal shows: without colours, and of each line what was written since it was erased. */
function shown(written: string): string {
  const lines = written.replace(/\x1b\[[\d;]*m/g, '').split(/\r*\n/)
  return lines.map((line) => line.slice(line.lastIndexOf('\r') + 1).replace('\x1b[K', '')).join('\n')
}

it.skipIf(!hasTerminals)(
  'tells earlier runs apart, counts a pause down, and leaves no progress behind',
  async () => {
    const here = await trial(
      { extract: ONE_SLOT },
      { faults: [{ kind: 'status', status: 429, retryAfter: '3', requests: [5] }] },
    )
    expect((await here.call('run', '--max-requests', '3')).code).toBe(4)
    const { folder: cwd, env } = here
    const { code, screens, written } = await onTerminal(80, cwd, env)
    expect(code, written).toBe(0)
    expect(written).toMatch(COLOUR)
    const pauses = screens.map((screen) => /paused by a 429 for (\d) s/.exec(screen)?.[1])
    expect(new Set(pauses.filter((seconds) => seconds !== undefined)).size).toBeGreaterThan(1)
    expect(screens.findLast((screen) => screen.includes('paused by a 429'))!.trimEnd()).toMatch(
      /^trial: \d of 3 partitions, .*paused by a 429 for \d s/m,
    )
    // The line of progress is erased at the end: only the log and the summary are left.
    const end = screens.at(-1)!
    expect(end).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: the service responded with 429.*\ntrial: complete in/s)
    expect(end).not.toContain('paused by a 429')
  },
)

it.skipIf(!hasTerminals)(
  'in a narrow window the line of progress is cut, and Ctrl-C is confirmed',
  async () => {
    // The second search waits for its permit.
    const { folder, env } = await trial({ service: { requests_per_second: 0.01 }, extract: ONE_SLOT })
    let typed = false
    const interrupt = (screen: string, type: (text: string) => void) => {
      if (typed || !hasResponse(screen)) return
      typed = true
      type('\x03')
    }
    const plain = { ...env, NO_COLOR: '1' }
    const { code, screens, written } = await onTerminal(40, folder, plain, interrupt)
    expect(code, written).toBe(130)
    expect(written).not.toMatch(COLOUR)
    const drawn = screens.find(hasResponse)!.split('\n')
    expect(drawn).toEqual([expect.stringMatching(/^trial: \d of 3 partitions, 2 rows.*…$/)])
    expect(drawn[0]!.length).toBeLessThan(40)
    expect(screens.find((screen) => screen.includes('Stopping after'))).toMatch(/^Stopping after /m)
    expect(screens.at(-1)).not.toContain('of 3 partitions,')
  },
)

const hostile = fc.constantFrom('\x1b', '\x7f', '\x9b', '\r', '\u2028', '\u202e', '\ufeff')
const anyText = fc.string({
  unit: fc.oneof(fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }), hostile),
})

const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

it('text from outside loses all that controls a terminal; as JSON it keeps its value, on one line', () => {
  expect(plainText('Grüße, 世界 🧵\n\tzwei')).toBe('Grüße, 世界 🧵\n\tzwei')
  fc.assert(
    fc.property(fc.jsonValue(), anyText, (value, text) => {
      const json = plainJson({ value, text })
      for (const line of [plainText(text).replace(/[\n\t]/g, ''), plainLine(text), json])
        expect(line).not.toMatch(CONTROL)
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ value, text })))
    }),
  )
})

it('texts are cut and padded by columns of a terminal, not by characters', () => {
  expect(['Grüße', '世界', '🧵!'].map(widthOf)).toEqual([5, 4, 3])
  expect(cutTo('世界世界', 5)).toBe('世界…')
  expect(padTo('世界', 6)).toBe('世界  ')
  expect(padTo('12', 4, 'right')).toBe('  12')
  fc.assert(
    fc.property(anyText, fc.nat(40), (text, columns) => {
      expect(widthOf(cutTo(text, columns))).toBeLessThanOrEqual(columns)
    }),
  )
})

it.each([
  [
    bytes,
    { 0: '0 B', 999: '999 B', 1000: '1.0 kB', 999949: '999.9 kB', 999950: '1.0 MB', 8140000000: '8.1 GB' },
  ],
  [duration, { 0: '0.0 s', 9949: '9.9 s', 9950: '10 s', 59600: '1 min 0 s', 3599000: '59 min 59 s' }],
  [duration, { 3599600: '1 h 0 min', 86399000: '1 d 0 h' }],
  [roughly, { 0: '5 s', 11000: '15 s', 56000: '1 min', 61000: '2 min', 3599000: '1 h 0 min' }],
  [stopwatch, { 0: '0:00', 7400: '0:07', 3599600: '1:00:00' }],
])('quantities are short: %o %o', (shown, expected) => {
  for (const [value, text] of Object.entries(expected)) expect(shown(Number(value))).toBe(text)
})

it.each([
  ['pipelines/demo.yaml', 'pipelines/demo.yaml'],
  ["it's here.yaml", `'it'\\''s here.yaml'`],
  ['$(x).yaml', `'$(x).yaml'`],
])('%s is %s in a shell', (text, word) => expect(shellWord(text)).toBe(word))
