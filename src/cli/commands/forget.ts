import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf, type ExportError, isExportError, type Pipeline } from '../../core/index.ts'
import { decoded, type ForgetResult, forgetPeople } from '../../data-set/index.ts'
import { readMaskKey } from '../../pipeline/index.ts'
import { flag, type Io, stringValue, wrongUsage } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { canAsk, requireYes } from '../terminal/prompts.ts'
import { counted, shownPath } from '../terminal/text.ts'

/** Room for a million addresses. */
const MAX_LENGTH = 64 << 20

export const forget = dataSetCommand('change', {
  flags: {
    identities: stringValue('File with identities, one a line; left out: they are read from stdin'),
    'dry-run': flag('Report what would be removed, and change nothing'),
    yes: flag('Do not ask'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 forget pipeline.yaml --identities people.txt --dry-run', 'What there is of them'],
    ['$0 forget pipeline.yaml --yes < people.txt', 'Without a question: from a script'],
  ],
  epilogue: 'Backups, copies and tables are not touched; the next `load` replaces rows in tables.',
  async run(args, io, dataSet) {
    const identities = await identitiesOf(args.identities, io)
    const { pipeline } = dataSet
    const maskKey = await readMaskKey(pipeline, io.env)
    const work = (dryRun: boolean) =>
      changing(io, (options) => forgetPeople(dataSet, identities, { ...options, dryRun, maskKey }))
    if (!args.dryRun && !args.yes) await askToForget(pipeline, () => work(true), io)
    const result = await work(args.dryRun)
    await io.stdout.result(args.json, { ...result, dry_run: args.dryRun }, [resultText(result, args.dryRun)])
  },
})

/** Lines, empty ones too, so that their numbers are those of the file. @throws ExportError `config` when there are none */
async function identitiesOf(file: string | undefined, { cwd }: Io): Promise<readonly string[]> {
  if (file === undefined && process.stdin.isTTY)
    throw none('No identities are given', 'Name a file of them with --identities, or pipe them in.')
  const where = file ?? 'stdin'
  const source = file === undefined ? process.stdin : createReadStream(resolve(cwd, file))
  let text = ''
  try {
    for await (const part of decoded(source, where)) {
      text += part
      if (text.length > MAX_LENGTH)
        throw none(`${where} is larger than 64 MB`, 'Give the identities in several calls.')
    }
  } catch (error) {
    if (isExportError(error)) throw error
    throw none(`The identities in ${where} cannot be read: ${codeOf(error)}`, 'Correct --identities.')
  }
  // A carriage return alone ends lines only where nothing else does: an identity may have one.
  const lines = text.split(text.includes('\n') ? /\r?\n/ : /\r/)
  if (lines.some((line) => line.trim() !== '')) return lines
  throw none(`There is no identity in ${where}`, 'Give one a line, and nothing else.')
}

function none(what: string, next: string): ExportError {
  return wrongUsage(what, `${next} Nothing was changed.`)
}

async function askToForget(
  pipeline: Pipeline,
  plan: () => Promise<ForgetResult>,
  { screen, cwd }: Io,
): Promise<void> {
  if (canAsk(screen)) screen.write(`${resultText(await plan(), true)}\n`)
  await requireYes(screen, {
    what: 'forget removes data',
    where: shownPath(pipeline.load.path, cwd),
    question: 'Remove it for good, and keep these people out?',
    next: 'Run `forget` again any time.',
  })
}

function resultText(
  { pipeline, identities, rows, shards, quarantined, notes }: ForgetResult,
  isDry: boolean,
): string {
  const people = counted(identities, 'identity', 'identities')
  const items = quarantined === 0 ? '' : ` and ${counted(quarantined, 'quarantined item')}`
  const found = `${counted(rows, 'row')}${items} of ${people}`
  const files =
    shards === 0
      ? ''
      : `; ${counted(shards, 'shard')} ${isDry ? 'would be' : shards === 1 ? 'was' : 'were'} written anew`
  const kept = isDry ? '' : '; later runs drop what comes of them again'
  return [`${pipeline}: ${isDry ? 'would remove' : 'removed'} ${found}${files}${kept}`, ...notes].join('\n')
}
