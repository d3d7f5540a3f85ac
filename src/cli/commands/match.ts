import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf, ExportError, parseInstant } from '../../core/index.ts'
import {
  type Directory,
  type Match,
  type Matches,
  matchPeople,
  type QueryStream,
  readDirectory,
} from '../../data-set/index.ts'
import { readMaskKey } from '../../pipeline/index.ts'
import { identityHider, normalIdentity } from '../../transform/index.ts'
import {
  choiceOf,
  flag,
  type Io,
  requiredValue,
  stringValue,
  stringValues,
  wrongUsage,
} from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { requireApart } from '../results/flag-file.ts'
import { MatchTally } from '../results/match-tally.ts'
import { csvParts, jsonParts, shownOn } from '../results/row-text.ts'
import { saveFile } from '../results/save-file.ts'
import { unannounced, untilStopped } from '../terminal/signals.ts'
import { counted } from '../terminal/text.ts'
import { warnOfGaps } from './query.ts'

export const match = dataSetCommand('read', {
  flags: {
    directory: requiredValue(
      'CSV with a header, as Entra ID, Active Directory, Okta or Google Workspace export it',
    ),
    column: stringValues(
      'Column with addresses; repeatable [those known: mail, userPrincipalName, email, …]',
    ),
    key: stringValue('Column that stands for a person in the result [the first]'),
    'plus-tags': flag('Take a+shop@b.com for a@b.com too'),
    digests: flag('The columns hold digests, which `spillway digest` makes'),
    since: stringValue('Only what was imported then or later: 2024-05-01'),
    format: choiceOf(
      ['table', 'csv', 'json'],
      'table',
      'table: one row a person; csv or json: one for each credential of a person',
    ),
    output: stringValue('Write the result to this file, which only you can read'),
  },
  examples: [
    ['$0 match pipeline.yaml --directory people.csv', 'Who of ours is in the data set'],
    [
      '$0 match pipeline.yaml --directory people.csv --since 2024-05-01 --format csv --output new.csv',
      'What came since May, for a ticket or a mail',
    ],
  ],
  async run(args, io, { pipeline, planned }) {
    const since = args.since === undefined ? null : parseInstant(args.since)
    if (args.since !== undefined && since === null)
      throw wrongUsage(`--since: expected a date such as 2024-05-01, found ${args.since}`, 'Correct it.')
    const output = args.output === undefined ? null : resolve(io.cwd, args.output)
    if (output !== null) await requireApart({ path: output, what: 'The result' }, [pipeline])
    const isMasked = pipeline.transform.identity === 'hmac'
    if (args.digests && !isMasked)
      throw wrongUsage('--digests goes with transform.identity: hmac', 'Give a directory with addresses.')
    const maskKey = isMasked && !args.digests ? await readMaskKey(pipeline, io.env) : null
    const directory = await readDirectory(bytesOf(args.directory, io), {
      columns: args.column ?? [],
      key: args.key ?? null,
      hasDigests: args.digests,
      storedForm: isMasked && !args.digests ? identityHider({ identity: 'hmac', maskKey }) : normalIdentity,
      where: args.directory,
    })
    warnOfCells(directory, args.digests, io)
    const take = async (found: Matches): Promise<MatchTally> => {
      await warnOfGaps(planned, io)
      const tally = new MatchTally(directory, found.columns)
      const parts = FORMATS[args.format](found, tally)
      if (output === null) await io.stdout.parts(shownOn(io.stdout, parts))
      else await saveFile(output, parts, 'The result')
      return tally
    }
    const options = { since, plusTags: args.plusTags, maskKey }
    const tally = await untilStopped(
      io,
      ({ stop }) => matchPeople(pipeline, directory, { ...options, stop }, take),
      unannounced,
    )
    io.screen.write(`${tally.text()}\n`)
  },
})

const FORMATS = {
  csv: (found: Matches, tally: MatchTally) => csvParts(streamOf(found, tally)),
  json: (found: Matches, tally: MatchTally) => jsonParts(streamOf(found, tally)),
  async *table(found: Matches, tally: MatchTally): AsyncGenerator<string> {
    for await (const some of found.matches) for (const each of some) tally.add(each)
    for (const line of tally.table()) yield `${line}\n`
  },
} as const

function streamOf({ columns, matches }: Matches, tally: MatchTally): QueryStream {
  async function* batches(): AsyncGenerator<readonly Match['cells'][]> {
    for await (const some of matches) {
      for (const each of some) tally.add(each)
      yield some.map(({ cells }) => cells)
    }
  }
  return { columns, batches: batches() }
}

async function* bytesOf(file: string, { cwd }: Io): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(resolve(cwd, file))
  } catch (error) {
    if (codeOf(error) === '') throw error
    throw new ExportError({
      kind: 'config',
      what: `The directory cannot be read: ${codeOf(error)}`,
      where: file,
      next: 'Correct --directory.',
    })
  }
}

function warnOfCells({ others, linesOfOthers, unaddressed }: Directory, hasDigests: boolean, io: Io): void {
  const one = hasDigests ? 'digest' : 'address'
  if (others > 0) {
    const more = others > linesOfOthers.length ? ', …' : ''
    const lines = `${linesOfOthers.join(', ')}${more}`
    io.log(
      'warn',
      `${counted(others, 'cell')} with something that is no ${one}, not looked for: lines ${lines}`,
    )
  }
  if (unaddressed > 0)
    io.log(
      'warn',
      `${counted(unaddressed, 'person', 'people')} without ${one === 'address' ? 'an' : 'a'} ${one}`,
    )
}
