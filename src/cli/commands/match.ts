import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf, ExportError, getOrInsert, IDENTITY_POLICIES, parseInstant } from '../../core/index.ts'
import {
  type Directory,
  type Matches,
  matchPeople,
  type QueryStream,
  readDirectory,
} from '../../data-set/index.ts'
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
import { csvParts, jsonParts, shownOn } from '../results/row-text.ts'
import { isSameFile, requireApart, saveFile } from '../results/save-file.ts'
import { styleFor } from '../terminal/screen.ts'
import { unannounced, untilStopped } from '../terminal/signals.ts'
import { alignedTable, resultTable } from '../terminal/table.ts'
import { count, counted } from '../terminal/text.ts'
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
    const people = tallyOf(found)
    const { format } = pipeline.load
    const escapes = format.kind === 'csv' && format.escapeFormulas
    const parts = {
      csv: () => csvParts(streamOf(found, escapes)),
      json: () => jsonParts(streamOf(found, false)),
      table: () => tableLines(directory, found, people),
    }[args.format]()
    if (output === null) await io.stdout.parts(shownOn(io.stdout, parts))
    else await saveFile(output, parts, 'The result')
    io.screen.write(`${tallyText(directory, found, people)}\n`)
  },
})

type Person = {
  credentials: number
  first: string
  last: string
  readonly sources: Set<string>
  /** Plain secrets that the policy allows. */
  allowed: number
}

/** What each person has, by their numbers in the directory. */
function tallyOf({ columns, matches }: Matches): ReadonlyMap<number, Person> {
  const people = new Map<number, Person>()
  const [importedAt, source, name, meets] = OF_PEOPLE.map((column) => columns.indexOf(column, OWN_COLUMNS))
  for (const { person, cells } of matches) {
    const found = getOrInsert(people, person, newPerson)
    const at = String(cells[importedAt!] ?? '')
    const from = cells[name!] ?? cells[source!]
    found.credentials++
    if (found.first === '' || at < found.first) found.first = at
    if (at > found.last) found.last = at
    if (from != null) found.sources.add(String(from))
    if (cells[meets!] === true) found.allowed++
  }
  return people
}

function newPerson(): Person {
  return { credentials: 0, first: '', last: '', sources: new Set(), allowed: 0 }
}

const OF_PEOPLE = ['imported_at', 'source_id', 'source_name', 'secret_meets_policy']
/** The key, which may have any name, and the identity. */
const OWN_COLUMNS = 2

function hasFacts({ columns }: Matches): boolean {
  return columns.includes('secret_meets_policy', OWN_COLUMNS)
}

async function* tableLines(
  { key, people: keys }: Directory,
  found: Matches,
  people: ReadonlyMap<number, Person>,
): AsyncGenerator<string> {
  const facts = hasFacts(found)
  const header = [key, 'credentials', ...(facts ? ['meets policy'] : []), 'first', 'last', 'sources']
  const rows = Array.from(people, ([person, { credentials, allowed, first, last, sources }]) => [
    keys[person],
    credentials,
    ...(facts ? [allowed] : []),
    first.slice(0, 10),
    last.slice(0, 10),
    shortList([...sources].sort()),
  ])
  if (rows.length === 0) return
  for (const line of alignedTable(resultTable(header, rows), styleFor(false))) yield `${line}\n`
}

function shortList(names: readonly string[]): string {
  const more = names.length > MAX_SOURCES ? [`and ${count(names.length - MAX_SOURCES)} more`] : []
  return [...names.slice(0, MAX_SOURCES), ...more].join(', ')
}

const MAX_SOURCES = 3

function tallyText(directory: Directory, found: Matches, people: ReadonlyMap<number, Person>): string {
  const { columns, matches } = found
  const column = columns.indexOf('source_id', OWN_COLUMNS)
  const ids = new Set(matches.flatMap(({ cells }) => (cells[column] == null ? [] : String(cells[column]))))
  const allowed = [...people.values()].filter((person) => person.allowed > 0).length
  const all = counted(directory.people.length, 'person', 'people')
  const sources = column < 0 ? '' : ` from ${counted(ids.size, 'source')}`
  const facts = hasFacts(found) ? `; ${count(allowed)} with a password that the policy allows` : ''
  return `${count(people.size)} of ${all}: ${counted(matches.length, 'credential')}${sources}${facts}`
}

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
