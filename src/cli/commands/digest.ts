import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { Log } from '../../core/index.ts'
import { columnIndices, decoded, knownIndices, partsOf, readCsvTable } from '../../data-set/index.ts'
import { readKeyOf } from '../../pipeline/index.ts'
import { identityHider } from '../../transform/index.ts'
import { command, stringValues, wrongUsage } from '../command-line/command.ts'
import { csvText } from '../results/row-text.ts'

const KEY = 'SPILLWAY_MASK_KEY'

export const digest = command({
  flags: {
    column: stringValues('stdin is CSV with a header: this column holds the identities; repeatable'),
  },
  examples: [
    ['$0 digest < people.txt', 'One identity a line'],
    ['$0 digest --column mail < people.csv > digests.csv', 'For `match --directory digests.csv --digests`'],
  ],
  epilogue: `The digests are those of transform.identity: hmac, under the key in ${KEY}.`,
  async run({ column }, io) {
    if (process.stdin.isTTY) throw wrongUsage('No identities are given', 'Pipe them in.')
    const hide = identityHider({ identity: 'hmac', maskKey: await readKeyOf(KEY, io.env, 'digest') })
    await io.stdout.parts(column === undefined ? linesOf(hide) : cellsOf(column, hide, io.log))
  },
})

type Hide = (identity: string) => string

async function* linesOf(hide: Hide): AsyncGenerator<string> {
  const input = Readable.from(decoded(process.stdin, 'stdin'))
  for await (const line of createInterface({ input })) yield `${line.trim() === '' ? '' : hide(line)}\n`
}

async function* cellsOf(names: readonly string[], hide: Hide, log: Log): AsyncGenerator<string> {
  const { header, delimiter, rows } = await readCsvTable(process.stdin, 'stdin')
  const columns = new Set(columnIndices(header, names, 'stdin'))
  const clear = knownIndices(header).filter((i) => !columns.has(i))
  if (clear.length > 0)
    log(
      'warn',
      `addresses stay in clear in ${clear.map((i) => header[i]).join(', ')}: name these with --column too`,
    )
  yield csvText([header], delimiter)
  for await (const { cells } of rows) {
    const hidden = cells.map((cell, i) =>
      columns.has(i) ? partsOf(cell).map(hide).join(';') || null : cell || null,
    )
    yield csvText([hidden], delimiter)
  }
}
