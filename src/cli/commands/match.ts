import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf, ExportError, IDENTITY_POLICIES, parseInstant } from '../../core/index.ts'
import { type Matches, matchPeople, type QueryStream, readDirectory } from '../../data-set/index.ts'
import { readMaskKey } from '../../pipeline/index.ts'
import { identityDigest, normalIdentity } from '../../transform/index.ts'
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
import { MatchTally } from '../results/match-tally.ts'
import { csvParts, jsonParts, shownOn } from '../results/row-text.ts'
import { isSameFile, requireApart, saveFile } from '../results/save-file.ts'
import { unannounced, untilStopped } from '../terminal/signals.ts'
import { warnOfGaps } from './query.ts'

export const match = dataSetCommand('read', {
  flags: {
    directory: requiredValue(
      'CSV with a header, as Entra ID, Active Directory, Okta or Google Workspace export it',
    ),
    column: stringValues(
      'Column with addresses; repeatable [all known: mail, userPrincipalName, proxyAddresses, email, …]',
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
  async run(args, io, dataSet) {
    const { pipeline } = dataSet
    const since = args.since === undefined ? null : parseInstant(args.since)
    if (args.since !== undefined && since === null)
      throw wrongUsage(`--since: expected a date such as 2024-05-01, found ${args.since}`, 'Correct it.')
    const output = args.output === undefined ? null : resolve(io.cwd, args.output)
    if (output !== null) await requireApart(output, 'The result', [pipeline])
    if (output !== null && (await isSameFile(output, resolve(io.cwd, args.directory))))
      throw wrongUsage('--output names the directory of --directory', 'Choose another name for the result.')
    const isMasked = IDENTITY_POLICIES[pipeline.transform.identity].isKeyed
    if (args.digests && !isMasked)
      throw wrongUsage('--digests goes with transform.identity: hmac', 'Give a directory with addresses.')
    const maskKey = isMasked && !args.digests ? await readMaskKey(pipeline, io.env) : null
    const directory = await readDirectory(bytesOf(args.directory, io), {
      columns: args.column ?? [],
      key: args.key ?? null,
      hasDigests: args.digests,
      storedForm: args.digests ? (digest) => digest : isMasked ? identityDigest(maskKey) : normalIdentity,
      where: args.directory,
    })
    for (const warning of directory.warnings) io.log('warn', warning)
    if (args.digests && directory.fingerprints.length === 0)
      io.log(
        'warn',
        'the name of the column does not tell the key of the digests: with another nobody is found',
      )
    const options = { since, plusTags: args.plusTags, maskKey }
    const found = await untilStopped(
      io,
      ({ stop }) => matchPeople(dataSet, directory, { ...options, stop }),
      unannounced,
    )
    await warnOfGaps(dataSet, io)
    const tally = new MatchTally(directory, found)
    const { format } = pipeline.load
    const parts = FORMATS[args.format](found, tally, format.kind === 'csv' && format.escapeFormulas)
    if (output === null) await io.stdout.parts(shownOn(io.stdout, parts))
    else await saveFile(output, parts, 'The result')
    io.screen.write(`${tally.text()}\n`)
  },
})

const FORMATS = {
  csv: (found: Matches, _: MatchTally, escapes: boolean) => csvParts(streamOf(found, escapes)),
  json: (found: Matches) => jsonParts(streamOf(found, false)),
  async *table(_: Matches, tally: MatchTally): AsyncGenerator<string> {
    for (const line of tally.table()) yield `${line}\n`
  },
} as const

/** @param escapes whether texts that a spreadsheet would evaluate begin with `'` */
function streamOf({ columns, matches }: Matches, escapes: boolean): QueryStream {
  const cellOf = (cell: unknown): unknown =>
    escapes && typeof cell === 'string' ? cell.replace(/^'*[-=+@\t\r]/, "'$&") : cell
  async function* batches(): AsyncGenerator<readonly (readonly unknown[])[]> {
    for (let from = 0; from < matches.length; from += BATCH_ROWS)
      yield matches.slice(from, from + BATCH_ROWS).map(({ cells }) => cells.map(cellOf))
  }
  return { columns, batches: batches() }
}

const BATCH_ROWS = 1000

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
