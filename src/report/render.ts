import type { ReportData } from './data.ts'
import { type Draw, reportPage } from './page.ts'

// Of fewer rows tables say as much, and drawing takes longer than exporting them did.
const LEAST_ROWS_TO_DRAW = 1000

/**
 * The page of a report, with charts where they are worth it.
 * @param hurry somebody waits: no charts
 */
export async function renderReport(data: ReportData, hurry = false): Promise<string> {
  const isWorthIt = !hurry && (data.came.rows ?? 0) >= LEAST_ROWS_TO_DRAW
  return reportPage(data, isWorthIt ? await drawer() : null)
}

/** In a file of its own: loaded by those who draw. */
async function drawer(): Promise<Draw> {
  return (await import('./charts.ts')).drawBars
}
