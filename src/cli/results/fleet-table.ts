import type { ExportError } from '../../core/index.ts'
import type { Verdict } from '../../state/index.ts'
import { cutTo, type Style } from '../terminal/screen.ts'
import { alignedTable, type Column } from '../terminal/table.ts'
import { count, plainLine } from '../terminal/text.ts'
import { shortInstant, VERDICT_COLOURS } from './verdict.ts'

const MAX_REMARKS = 160

/** What is said of one of several pipeline files. */
export type FleetRow = {
  /** The pipeline; of a file that cannot be read, the file. */
  readonly name: string
  /** null: the file cannot be read, for what the remarks say. */
  readonly verdict: Verdict | null
  readonly rows: number
  readonly lastRun: string
  /** Besides what the verdict says. */
  readonly remarks: readonly string[]
}

/** Of a file that cannot be read, or whose pipeline could not begin. */
export function unreadRow(name: string, { what }: ExportError): FleetRow {
  return { name, verdict: null, rows: 0, lastRun: '', remarks: [what] }
}

const COLUMNS: readonly Column<FleetRow>[] = [
  { title: 'pipeline', cell: ({ name }) => plainLine(name) },
  {
    title: 'verdict',
    cell: ({ verdict }) => (verdict === null ? 'ERROR' : parts(verdict).word),
    colour: ({ verdict }) => (verdict === null ? 'red' : VERDICT_COLOURS[verdict.state]),
  },
  { title: 'rows', align: 'right', cell: ({ rows }) => (rows === 0 ? '' : count(rows)) },
  {
    title: 'covers until',
    cell: ({ verdict }) => (verdict?.covers ? shortInstant(verdict.covers.until) : ''),
  },
  {
    title: 'waiting',
    align: 'right',
    cell: ({ verdict }) => (verdict?.waiting.length ? count(verdict.waiting.length) : ''),
  },
  { title: 'last run', cell: ({ lastRun }) => lastRun },
  { title: 'remarks', cell: (row) => cutTo(remarksOn(row), MAX_REMARKS) },
]

/** A line for each pipeline file. */
export function fleetTable(rows: readonly FleetRow[], style: Style): Generator<string> {
  return alignedTable({ columns: COLUMNS, rows: () => rows }, style)
}

function remarksOn({ verdict, remarks }: FleetRow): string {
  const cause = verdict === null ? [] : [causeOf(verdict), ...verdict.leftOut]
  return plainLine([...cause, ...remarks].filter((text) => text !== '').join('; '))
}

function causeOf(verdict: Verdict): string {
  const { state, why } = verdict
  if (state === 'complete') return ''
  if (why === '') return parts(verdict).extent
  return state === 'damaged' ? `${parts(verdict).extent} (${why})` : why
}

/** `INCOMPLETE: 2 of 6 partitions not done` */
function parts({ headline }: Verdict): { readonly word: string; readonly extent: string } {
  const [, word = headline, extent = ''] = /^(\w+): (.*)$/s.exec(headline) ?? []
  return { word, extent }
}
