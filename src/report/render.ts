import type { ReportData } from './data.ts'
import { type Draw, reportPage } from './page.ts'

// Of fewer rows tables say as much, and drawing takes longer than exporting them did.
const LEAST_ROWS_TO_DRAW = 1000

/**
 * The page of a report, with charts where they are worth it and what draws them is there.
 * @param hurry somebody waits: no charts
 */
export async function renderReport(data: ReportData, hurry = false): Promise<string> {
  const isWorthIt = !hurry && (data.came.rows ?? 0) >= LEAST_ROWS_TO_DRAW
  return reportPage(data, isWorthIt ? await drawer() : null)
}

/** The command has it in a file of its own; a program that uses the library may have installed it or not. */
async function drawer(): Promise<Draw> {
  try {
    return (await import('./charts.ts')).drawBars
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}
