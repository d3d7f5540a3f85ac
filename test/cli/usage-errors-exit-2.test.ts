import { describe, expect, it } from 'vitest'
import { asFlags, parseCommandLine } from '../../src/cli/parse.ts'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { isExportError } from '../../src/core/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'

const WRONG: readonly (readonly [line: string, message: string])[] = [
  ['', 'No command is given. See `spillway --help`.'],
  ['frobnicate', 'Unknown command: frobnicate. See `spillway --help`.'],
  ['statu', 'Unknown command: statu. Did you mean status? See `spillway --help`.'],
  ['nosuch --help', 'Unknown command: nosuch. See `spillway --help`.'],
  ['run', 'run: an argument is missing. See `spillway run --help`.'],
  ['run a.yaml --frobnicate', 'Unknown argument: frobnicate. See `spillway run --help`.'],
  [
    'run a.yaml --concurency 3',
    'Unknown argument: concurency. Did you mean --concurrency? See `spillway run --help`.',
  ],
  ['verify a.yaml --domains b.com', 'Unknown argument: domains. See `spillway verify --help`.'],
  ['run a.yaml --no-json', 'Unknown argument: no-json. See `spillway run --help`.'],
  ['run a.yaml --max-requests many', '--max-requests: expected a number. See `spillway run --help`.'],
  [
    'run a.yaml --max-requests 3 --max-requests 4',
    '--max-requests is given more than once. See `spillway run --help`.',
  ],
  ['run a.yaml --from 2024 --from 2025', '--from is given more than once. See `spillway run --help`.'],
  ['run a.yaml --output', '--output needs a value. See `spillway run --help`.'],
  ['load a.yaml', 'load needs --to. See `spillway load --help`.'],
  ['evidence a.yaml', 'evidence needs --output. See `spillway evidence --help`.'],
  ['sign a.yaml b.yaml --key k', 'Unknown argument: b.yaml. See `spillway sign --help`.'],
  [
    'run a.yaml -- -b.yaml',
    'Unknown argument: -b.yaml; a file may be written ./-b.yaml. See `spillway run --help`.',
  ],
  ['report', 'report: an argument is missing. See `spillway report --help`.'],
  ['plan a.yaml b.yaml --all', '--all goes with one pipeline file. See `spillway plan --help`.'],
  ['status a b --all --state failed', '--all goes with one pipeline file. See `spillway status --help`.'],
  ...(
    [
      ['plan a.yaml --json --query x', '--json and --query'],
      ['summary a.yaml --format markdown --json', '--json and --format markdown'],
      ['query a.yaml --csv --json', '--csv and --json'],
      ['run a.yaml --fresh --from 2024-01-01', '--fresh and --from'],
    ] as const
  ).map(([line, flags]): [string, string] => {
    const [name] = line.split(' ')
    const what = `${flags} do not go together: one would be ignored`
    return [line, `${what}. See \`spillway ${name} --help\`.`]
  }),
  ['verify a.yaml --key pub.pem', '--key goes with --signature. See `spillway verify --help`.'],
  ['plan a.yaml --helpp', 'Unknown argument: helpp. Did you mean --help? See `spillway plan --help`.'],
  ['compact a --min-shards 1', '--min-shards: expected an integer from 2 on. See `spillway compact --help`.'],
  [
    'worker --concurrency 1001',
    '--concurrency: expected an integer from 1 to 1000. See `spillway worker --help`.',
  ],
  ['init a.yaml b.yaml', 'Unknown argument: b.yaml. See `spillway init --help`.'],
]

describe('a wrong command line', () => {
  it.each(WRONG)('"%s" is refused before anything is done', async (line, message) => {
    const words = line === '' ? [] : line.split(' ')
    const error = await parseCommandLine(words, 80).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(isExportError(error, 'config') && error.message).toBe(message)
    expect(exitCodeOf(error, null)).toBe(2)
  })

  it.each(['run a.yaml --log-level loud', 'report 1 --format html', 'run a.yaml --log-format xml'])(
    '"%s" names the allowed values',
    async (line) => {
      await expect(parseCommandLine(line.split(' '), 80)).rejects.toThrow(/Choices: /)
    },
  )

  // The others cover what is there.
  it.each([
    ...['status a', 'verify a', 'query a', 'ddl a --dialect snowflake', 'load a --to duckdb:b'],
    ...['summary a', 'prune a --older-than 90y', 'tables a'],
  ])('flags that narrow a run do not belong to "%s"', async (line) => {
    const flags = ['--from=2024-02-01', '--until=2024-02-01', '--domain=a.com', '--format=csv']
    // The page has a format of its own.
    for (const flag of line.startsWith('summary') ? flags.slice(0, -1) : flags)
      await expect(parseCommandLine([...line.split(' '), flag], 80)).rejects.toThrow(/^Unknown/)
  })

  it('ends with exit 2, an empty stdout and the message on stderr', async () => {
    const { code, stdout, stderr } = await inThisProcess(['frobnicate'], scratchFolder())
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('spillway: Unknown command: frobnicate. See `spillway --help`.\n')
  })
})

describe('arguments', () => {
  it('a repeated flag for domains does not consume the files that follow', async () => {
    const words = ['run', '--domain', 'a.com', 'one.yaml', '--domain', 'b.com', 'two.yaml']
    expect((await parseCommandLine(words, 80))?.args).toMatchObject({
      domain: ['a.com', 'b.com'],
      pipeline: ['one.yaml', 'two.yaml'],
    })
  })

  it('what follows -- is no flag', async () => {
    const called = async (...words: string[]) => (await parseCommandLine(asFlags(words), 80))?.args
    expect(await called('run', '--no-progress', '--', '-a.yaml', 'b.yaml')).toMatchObject({
      pipeline: ['-a.yaml', 'b.yaml'],
      'no-progress': true,
    })
    expect(await called('query', 'a.yaml', '--', '-h')).toMatchObject({ pipeline: 'a.yaml', sql: '-h' })
    await expect(called('schema', '--', '-x')).rejects.toThrow(/Unknown argument: -x/)
  })

  it.each(['run', 'status', 'verify', 'plan', 'check', 'forget'])(
    'a dash is the name of a file, and an empty name is none: %s',
    async (command) => {
      for (const [name, problem] of [
        ['-', 'The pipeline file does not exist (-)'],
        ['', 'The name of the pipeline file is empty'],
      ] as const) {
        const { code, stdout, stderr } = await inThisProcess([command, name], scratchFolder())
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
        expect(stderr).toContain(problem)
      }
    },
  )

  it('a file name may look like a number', async () => {
    const call = await parseCommandLine(['run', '007', '1e3'], 80)
    expect(call?.args).toMatchObject({ pipeline: ['007', '1e3'] })
  })
})
