import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { asFlags, parseCommandLine } from '../../src/cli/parse.ts'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { isExportError } from '../../src/core/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'

/** A command line, and what is said of it before the help that it names: that of the command where there is one. */
const WRONG = `
 ~ No command is given.
frobnicate ~ Unknown command: frobnicate.
statu ~ Unknown command: statu. Did you mean status?
run ~ run: an argument is missing.
run a.yaml --frobnicate ~ Unknown argument: frobnicate.
run a.yaml --concurency 3 ~ Unknown argument: concurency. Did you mean --concurrency?
run a.yaml --no-json ~ Unknown argument: no-json.
run a.yaml --max-requests many ~ --max-requests: expected a number.
run a.yaml --from 2024 --from 2025 ~ --from is given more than once.
run a.yaml --output ~ --output needs a value.
run a.yaml -- -b.yaml ~ Unknown argument: -b.yaml; a file may be written ./-b.yaml.
report ~ report: an argument is missing.
plan a.yaml b.yaml --all ~ --all goes with one pipeline file.
verify a.yaml --key pub.pem ~ --key goes with --signature.
plan a.yaml --helpp ~ Unknown argument: helpp. Did you mean --help?
worker --concurrency 1001 ~ --concurrency: expected an integer from 1 to 1000.
plan a.yaml --json --query x ~ --json and --query do not go together: one would be ignored.
summary a.yaml --format markdown --json ~ --json and --format markdown do not go together: one would be ignored.
run a.yaml --fresh --from 2024-01-01 ~ --fresh and --from do not go together: one would be ignored.
`
  .slice(1, -1)
  .split('\n')
  .map((row) => row.split(' ~ '))

describe('a wrong command line', () => {
  it.each(WRONG)('"%s" is refused before anything is done', async (line, message) => {
    const words = line === '' ? [] : line.split(' ')
    const error: unknown = await parseCommandLine(words, 80).catch((thrown: unknown) => thrown)
    const help = (words[0] ?? '') in COMMANDS ? ` ${words[0]}` : ''
    expect(isExportError(error, 'config') && error.message).toBe(`${message} See \`spillway${help} --help\`.`)
    expect(exitCodeOf(error, null)).toBe(2)
    // A defect.
    expect(exitCodeOf(new TypeError(message), null)).toBe(1)
  })

  it('names the allowed values', async () => {
    await expect(parseCommandLine(['run', 'a.yaml', '--log-level', 'loud'], 80)).rejects.toThrow(/Choices: /)
  })

  // The others cover what is there.
  it.each(['status a', 'load a --to duckdb:b', 'summary a'])(
    'flags that narrow a run do not belong to "%s"',
    async (line) => {
      const flags = ['--from=2024-02-01', '--until=2024-02-01', '--domain=a.com', '--format=csv']
      // The page has a format of its own.
      for (const flag of line.startsWith('summary') ? flags.slice(0, -1) : flags)
        await expect(parseCommandLine([...line.split(' '), flag], 80)).rejects.toThrow(/^Unknown/)
    },
  )
})

describe('arguments', () => {
  it('a repeated flag for domains does not consume the files that follow', async () => {
    const words = ['run', '--domain', 'a.com', 'one.yaml', '--domain', 'b.com', 'two.yaml']
    const wanted = { domain: ['a.com', 'b.com'], pipeline: ['one.yaml', 'two.yaml'] }
    expect((await parseCommandLine(words, 80))?.args).toMatchObject(wanted)
  })

  it('what follows -- is no flag', async () => {
    const called = async (...words: string[]) => (await parseCommandLine(asFlags(words), 80))?.args
    const run = { pipeline: ['-a.yaml', 'b.yaml'], 'no-progress': true }
    expect(await called('run', '--no-progress', '--', ...run.pipeline)).toMatchObject(run)
    expect(await called('query', 'a.yaml', '--', '-h')).toMatchObject({ pipeline: 'a.yaml', sql: '-h' })
    await expect(called('schema', '--', '-x')).rejects.toThrow(/Unknown argument: -x/)
  })

  it.each(['run', 'verify'])(
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
