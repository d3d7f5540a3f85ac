import { readFile, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname, parse, resolve } from 'node:path'
import { codeOf, ExportError, shellWord } from '../../core/index.ts'
import { packageFile, version } from '../../package/index.ts'
import { fileNeeds } from '../../pipeline/index.ts'
import { command, type Io } from '../command-line/command.ts'
import { SCHEDULES } from '../schedules/index.ts'
import type { Scheduled } from '../schedules/schedule.ts'

export const init = command({
  positionals: {
    file: {
      type: 'string',
      default: 'spillway.yaml',
      describe: 'Where to; never overwritten [spillway.yaml]',
    },
  },
  flags: {
    for: {
      choices: Object.keys(SCHEDULES) as (keyof typeof SCHEDULES)[],
      requiresArg: true,
      describe: 'Instead, print the schedule of a pipeline, ready to install: cron, systemd or kubernetes',
    },
  },
  examples: [
    ['$0 init', 'Into spillway.yaml'],
    ['$0 init acme.yaml', 'Under that name'],
    ['$0 init acme.yaml --for cron', 'A line for crontab, with what it needs'],
  ],
  async run({ file, for: scheduler }, io) {
    const { cwd, stdout } = io
    if (scheduler !== undefined) {
      await stdout.lines(await SCHEDULES[scheduler](await scheduledFrom(file, io)))
      return
    }
    const starter = await readFile(packageFile('pipelines/starter.yaml'), 'utf8')
    // The comments after it stay in line.
    const own = starter.replace(/^name: starter */m, (found) =>
      `name: ${nameFor(file)} `.padEnd(found.length),
    )
    try {
      await writeFile(resolve(cwd, file), own, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      throw notWritten(file, error)
    }
    const name = shellWord(file)
    await stdout.lines([
      `${file} is written. Next steps:`,
      '  export SPILLWAY_BASE_URL=…   host and prefix of the service',
      '  export SPILLWAY_TOKEN=…      an access token',
      `  spillway check ${name}`,
      `  spillway plan ${name}`,
      `  spillway run ${name}`,
      'No access at hand? `spillway sandbox` serves made-up data.',
    ])
  },
})

/** The name of a pipeline that its file is named after. */
function nameFor(file: string): string {
  const { name } = parse(file)
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
  return plain.replace(/^-|-$/g, '') || 'pipeline'
}

/** What a scheduler needs to run the pipeline as it would run here. */
async function scheduledFrom(file: string, { env, cwd }: Io): Promise<Scheduled> {
  const needs = await fileNeeds(file, { env, cwd, sendsNothing: true })
  const path = resolve(cwd, file)
  return {
    ...needs,
    file: path,
    folder: cwd,
    envFile: resolve(dirname(path), `${needs.pipeline.name}.env`),
    command: [process.execPath, ...(process.argv[1] === undefined ? [] : [process.argv[1]])],
    user: userName(),
    version,
  }
}

/** The name of the user, or its number where the system knows no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 0)
  }
}

function notWritten(file: string, cause: unknown): ExportError {
  const code = codeOf(cause)
  return new ExportError({
    kind: 'config',
    what: code === 'EEXIST' ? 'There is such a file already' : `The file cannot be written: ${code}`,
    where: file,
    next: 'Choose another name, in a folder that is there and can be written.',
    cause,
  })
}
