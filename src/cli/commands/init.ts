import { access, writeFile } from 'node:fs/promises'
import { parse, resolve } from 'node:path'
import { pipelineJsonSchema, type StarterAnswers, settingFault, starterPipeline } from '../../config/index.ts'
import { ExportError } from '../../core/index.ts'
import { command, flag } from '../command-line/command.ts'
import { codeOf } from '../results/save-file.ts'
import { DONE } from '../terminal/exit-code.ts'
import { asking, canAsk } from '../terminal/prompts.ts'
import type { Screen } from '../terminal/screen.ts'
import { shellWord } from '../terminal/text.ts'

export const init = command({
  options: (yargs) =>
    yargs
      .positional('file', {
        type: 'string',
        default: 'spillway.yaml',
        describe: 'Where to; never overwritten',
      })
      .options({
        interactive: flag('Ask for the most important settings'),
      })
      .example('$0 init acme.yaml --interactive', 'The same, made to measure')
      .example('$0 init acme.yaml', 'A starter under that name'),
  async run({ file, interactive }, { cwd, stdout, screen }) {
    if (interactive) await refuseExisting(resolve(cwd, file), file)
    const answers = interactive ? await askOnTerminal(file, screen) : {}
    try {
      await writeFile(resolve(cwd, file), starterPipeline(answers), { flag: 'wx', mode: 0o600 })
    } catch (error) {
      throw notWritten(file, error)
    }
    const name = shellWord(file)
    await stdout.line(
      [
        `${file} is written. Next steps:`,
        '  export SPILLWAY_BASE_URL=…   host and prefix of the service',
        '  export SPILLWAY_TOKEN=…      an access token',
        `  spillway check ${name}`,
        `  spillway plan ${name}`,
        `  spillway run ${name}`,
        'No access at hand? `spillway sandbox` serves made-up data.',
      ].join('\n'),
    )
    return DONE
  },
})

/** Fails before the questions if the file cannot be written. */
async function refuseExisting(path: string, file: string): Promise<void> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  )
  if (isThere) throw notWritten(file, Object.assign(new Error(), { code: 'EEXIST' }))
}

async function askOnTerminal(file: string, screen: Screen): Promise<StarterAnswers> {
  if (!canAsk(screen)) {
    throw new ExportError({
      kind: 'config',
      what: 'There is no terminal for questions: stdin or stderr is none',
      where: '--interactive',
      next: 'Omit it: init then writes a commented file to edit.',
    })
  }
  const name = parse(file)
    .name.toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .slice(0, 100)
  const usual = { name: name || 'my-export', from: `${new Date().getUTCFullYear() - 1}-01-01` }
  const write = (line: string): void => screen.write(`${line}\n`)
  const answers = await asking(screen, 'Nothing was written', (ask) => interview(ask, write, usual))
  if (answers !== null) return answers
  throw new ExportError({
    kind: 'config',
    what: 'The answers ended too early',
    where: 'stdin',
    next: 'Nothing was written. Run it again.',
  })
}

function notWritten(file: string, cause: unknown): ExportError {
  const code = codeOf(cause)
  if (code === 'EEXIST') {
    return new ExportError({
      kind: 'config',
      what: 'There is such a file already',
      where: file,
      next: 'Choose another name.',
      cause,
    })
  }
  return new ExportError({
    kind: 'config',
    what: `The file cannot be written: ${code}`,
    where: file,
    next: 'Choose a folder that is there and can be written.',
    cause,
  })
}

/** Asks one question; resolves to the answer as it was typed. */
type Ask = (question: string) => Promise<string>

/** Asks for what a first pipeline needs; every answer is checked like a key of a pipeline file. */
export async function interview(
  ask: Ask,
  write: (line: string) => void,
  usual: Pick<StarterAnswers, 'name' | 'from'>,
): Promise<StarterAnswers> {
  const one = async (question: string, byDefault: string, ...path: string[]): Promise<string> => {
    for (;;) {
      const answer = (await ask(`${question} [${byDefault}]: `)).trim() || byDefault
      // A reference to a variable is checked once there is a value.
      const fault = answer.includes('${') ? null : settingFault(path, answer)
      if (fault === null) return answer
      write(`  expected ${fault}`)
    }
  }
  const domains = async (): Promise<readonly string[]> => {
    for (;;) {
      const given = (await ask('Domains to look for, separated by spaces: ')).split(/[\s,]+/).filter(Boolean)
      const fault = given.length === 0 ? 'at least one domain' : settingFault(['extract', 'domains'], given)
      if (fault === null) return given
      write(`  expected ${fault}`)
    }
  }
  return {
    name: await one('Name of the export', usual.name, 'name'),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
    baseUrl: await one('Base URL of the service', '${SPILLWAY_BASE_URL}', 'service', 'base_url'),
    domains: await domains(),
    from: await one('Imported from (inclusive)', usual.from, 'extract', 'windows', 'from'),
    until: await one('until (exclusive)', 'now', 'extract', 'windows', 'until'),
    every: await one(
      'A folder for every: <n>h, <n>d, week, month, year',
      'month',
      'extract',
      'windows',
      'every',
    ),
    format: await one('Format: parquet, csv', 'parquet', 'load', 'format'),
    secret: await one(
      'Leaked secrets: redact, drop, partial, hmac, plaintext',
      'redact',
      'transform',
      'secret',
    ),
  }
}

export const schema = command({
  options: (yargs) =>
    yargs
      .example('$0 schema > pipeline.schema.json', 'Once; then point the editor to it')
      .example('$0 schema | jq .properties.load', 'What can be said in one section'),
  async run(_args, { stdout }) {
    await stdout.line(JSON.stringify(pipelineJsonSchema(), null, 2))
    return DONE
  },
})
