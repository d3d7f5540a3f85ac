import { parse } from 'csv-parse/sync'
import { expect, it } from 'vitest'
import { runCommandLine } from '../../src/cli/run-command-line.ts'
import { Output } from '../../src/cli/terminal/output.ts'
import { Screen } from '../../src/cli/terminal/screen.ts'
import { Signals } from '../../src/cli/terminal/signals.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { exportHere } from '../warehouse/in-process.ts'
import { accessTo, Collector, sandboxWith, spillway, writePipeline } from './spillway.ts'

/** A data set. The expected results of most queries follow from their SQL alone. */
async function exported(): Promise<{
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}> {
  const sandbox = await sandboxWith({ records: 5 })
  const folder = scratchFolder()
  await writePipeline(folder, { name: 'pipeline' })
  const env = accessTo(sandbox)
  await exportHere({ folder, env })
  return { folder, env }
}

/** Runs `query` with these arguments, and prints to a stream like stdout. */
async function queryTo(
  stdout: Collector,
  { folder: cwd, env }: Awaited<ReturnType<typeof exported>>,
  ...words: string[]
): Promise<number> {
  return runCommandLine(['query', 'pipeline.yaml', ...words], {
    env,
    cwd,
    program: 'spillway',
    stdout: new Output(stdout as unknown as NodeJS.WriteStream, { NO_COLOR: '1' }),
    screen: new Screen(new Collector() as unknown as NodeJS.WriteStream, env),
    signals: new Signals(),
  })
}

it('--csv keeps null and the empty string apart, as exports do', async () => {
  const { folder, env } = await exported()
  const sql = `SELECT NULL AS "none", '' AS "empty", 'a"b,c' AS "text", true AS "yes", ['x', NULL] AS "list", 2.5 AS "number"`
  const { code, stdout, stderr } = await spillway(['query', 'pipeline.yaml', sql, '--csv'], folder, env)
  expect(code, stderr).toBe(0)
  expect(stdout).toBe('none,empty,text,yes,list,number\n,"","a""b,c",true,"[""x"",null]",2.5\n')
})

it('on a terminal, CSV has no control sequences; in a file, values are unchanged', async () => {
  const dataSet = await exported()
  const sql = `SELECT chr(27) || '[2Jred' || chr(8238) || chr(155) AS "bad", chr(27) || 'x' AS "a${'\x1b'}[31mb"`
  const file = new Collector()
  expect(await queryTo(file, dataSet, sql, '--csv')).toBe(0)
  expect(parse(file.text)).toEqual([
    ['bad', 'a\x1b[31mb'],
    ['\x1b[2Jred\u202e\x9b', '\x1bx'],
  ])
  const terminal = Object.assign(new Collector(), { isTTY: true, columns: 100 })
  expect(await queryTo(terminal, dataSet, sql, '--csv')).toBe(0)
  expect(terminal.text).toBe('bad,a[31mb\n[2Jred,x\n')
})

it.each([
  { flag: '--json', first: '[{"n":0},\n{"n":1},\n' },
  { flag: '--csv', first: 'n\n0\n1\n' },
])('$flag prints rows as they arrive, and stops when the reader closes the pipe', async ({ flag, first }) => {
  const dataSet = await exported()
  const reader = new Impatient(1_000_000)
  // Far more than any buffer holds.
  expect(await queryTo(reader, dataSet, 'SELECT range AS n FROM range(1000000000000)', flag)).toBe(0)
  expect(reader.text.startsWith(first)).toBe(true)
})

it('--json and --csv print every row of results of many batches', async () => {
  const { folder, env } = await exported()
  const sql = 'SELECT range AS n FROM range(5000)'
  const json = await spillway(['query', 'pipeline.yaml', sql, '--json'], folder, env)
  expect(JSON.parse(json.stdout)).toEqual(Array.from({ length: 5000 }, (_, n) => ({ n })))
  const csv = await spillway(['query', 'pipeline.yaml', sql, '--csv'], folder, env)
  expect(csv.stdout).toBe(`n\n${Array.from({ length: 5000 }, (_, n) => `${n}\n`).join('')}`)
  const none = await spillway(['query', 'pipeline.yaml', `${sql} LIMIT 0`, '--json'], folder, env)
  expect(none.stdout).toBe('[]\n')
})

/** A reader that closes its end, as `head` does. */
class Impatient extends Collector {
  constructor(readonly most: number) {
    super()
  }

  override _write(chunk: Buffer, encoding: string, done: (error?: Error) => void): void {
    if (this.text.length <= this.most) super._write(chunk, encoding, done)
    else done(Object.assign(new Error('gone'), { code: 'EPIPE' }))
  }
}
