import { createHash } from 'node:crypto'
import type { Bars } from './charts.ts'
import type { ReportData } from './data.ts'
import { reportPage } from './page.ts'

// With fewer rows, tables are enough, and drawing takes longer than the export.
const MIN_ROWS_TO_DRAW = 1000

/**
 * The page of a report, with charts if they are useful.
 * @param hurry the process is about to be killed: no charts
 * @param earlier the previous page; null: there is none. Unchanged charts are copied from it, since drawing would take
 *   most of the time of a run with nothing to do
 */
export async function renderReport(
  data: ReportData,
  hurry = false,
  earlier: string | null = null,
): Promise<string> {
  if (hurry || (data.rows.rows ?? 0) < MIN_ROWS_TO_DRAW) return reportPage(data, null)
  const drawn = chartsOf(earlier ?? '')
  let lacksOne = false
  const page = reportPage(data, (bars) => {
    const name = nameOf(bars, data)
    const chart = drawn.get(name)
    lacksOne ||= chart === undefined
    return marked(name, chart ?? '')
  })
  if (!lacksOne) return page
  // A separate file, loaded only to draw.
  const { drawBars } = await import('./charts.ts')
  return reportPage(data, (bars) => {
    const name = nameOf(bars, data)
    return marked(name, drawn.get(name) ?? drawBars(bars))
  })
}

/** The same for the same chart, drawn by the same version. */
function nameOf(bars: Bars, { spillway }: ReportData): string {
  return createHash('sha256')
    .update(JSON.stringify([spillway, bars]))
    .digest('hex')
}

/** Charts are SVG without comments. */
function marked(name: string, chart: string): string {
  return `<!--chart ${name}-->${chart}<!--/chart-->`
}

function chartsOf(page: string): ReadonlyMap<string, string> {
  const charts = page.matchAll(/<!--chart ([0-9a-f]{64})-->(<svg .*?<\/svg>)<!--\/chart-->/gs)
  return new Map(Array.from(charts, ([, name = '', chart = '']) => [name, chart]))
}
