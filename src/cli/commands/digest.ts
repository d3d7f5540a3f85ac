import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { type Log, linesText } from '../../core/index.ts'
import { decoded, digestColumn, identitiesIn, readDirectory } from '../../data-set/index.ts'
import { readKeyOf } from '../../pipeline/index.ts'
import { keyFingerprint } from '../../state/index.ts'
import { identityDigest } from '../../transform/index.ts'
import { command, stringValue, stringValues, wrongUsage } from '../command-line/command.ts'
import { csvText } from '../results/row-text.ts'

const KEY = 'SPILLWAY_MASK_KEY'

export const digest = command({
  flags: {
    column: stringValues('stdin is CSV with a header: this column holds the identities; repeatable'),
    key: stringValue('stdin is CSV with a header: the column that stands for a person [the first]'),
  },
  examples: [
    ['$0 digest < people.txt', 'One identity a line'],
    [
      '$0 digest --column mail --key employeeId < people.csv > digests.csv',
      'For `match --directory digests.csv --digests`',
    ],
  ],
  epilogue: `The digests are those of transform.identity: hmac, under the key in ${KEY}.`,
  async run({ column, key }, io) {
    if (process.stdin.isTTY) throw wrongUsage('No identities are given', 'Pipe them in.')
    const maskKey = await readKeyOf(KEY, io.env, 'digest')
    const hide = identityDigest(maskKey)
    const parts =
      column === undefined && key === undefined
        ? linesOf(hide, io.log)
        : peopleOf({ columns: column ?? [], key: key ?? null }, maskKey, hide, io.log)
    await io.stdout.parts(parts)
  },
})

type Hide = (identity: string) => string

/** A digest for each identity; an empty line for a line without any. */
async function* linesOf(hide: Hide, log: Log): AsyncGenerator<string> {
  const input = Readable.from(decoded(process.stdin, 'stdin'))
  const unread: number[] = []
  const several: number[] = []
  let number = 0
  let hasAny = false
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number++
    const identities = identitiesIn(line)
    hasAny ||= identities.unread + identities.found.length > 0
    if (identities.unread > 0) unread.push(number)
    if (identities.found.length > 1) several.push(number)
    yield `${identities.found.map(hide).join('\n')}\n`
  }
  if (!hasAny) throw wrongUsage('No identities are given', 'Pipe them in, one a line.')
  if (unread.length > 0) log('warn', `what is no identity has no digest: ${linesText(unread)}`)
  if (several.length > 0)
    log('warn', `each of several identities has a line of its own: ${linesText(several)}`)
}

/** A row for each person: the key and digests, and nothing else of the table. */
async function* peopleOf(
  given: { readonly columns: readonly string[]; readonly key: string | null },
  maskKey: Uint8Array,
  hide: Hide,
  log: Log,
): AsyncGenerator<string> {
  const { key, people, addresses, warnings } = await readDirectory(process.stdin, {
    ...given,
    hasDigests: false,
    hidesAddresses: true,
    storedForm: hide,
    where: 'stdin',
  })
  for (const warning of warnings) log('warn', warning)
  const digests = people.map((): string[] => [])
  for (const form of addresses.forms())
    for (const { person } of addresses.of(form)) digests[person]!.push(form)
  yield csvText([[key, digestColumn(keyFingerprint(maskKey))]])
  for (const [person, cell] of people.entries()) yield csvText([[cell, digests[person]!.join(';') || null]])
}
