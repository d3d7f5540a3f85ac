import type { ReportData } from './data.ts'
import { type Draw, reportPage } from './page.ts'

/** The page of a report, with charts where what draws them is there. */
export async function renderReport(data: ReportData): Promise<string> {
  return reportPage(data, await drawer())
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
