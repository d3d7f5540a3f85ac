import { appendFileSync } from 'node:fs'
import { afterAll } from 'vitest'

/** Totals of a file of fault tests, over all its exports. */
export type Figures = {
  exports: number
  kills: number
  /** All other faults: full disks, damaged files, signals. */
  faults: number
  lost: number
  duplicated: number
  repeated: number
}

/**
 * Counts the faults of a test file and prints the totals when its tests are done. With FAULT_REPORT set, the
 * file of that name gets a row of a Markdown table as well, to compare runs.
 */
export function faultFigures(title: string): Figures {
  const figures = { exports: 0, kills: 0, faults: 0, lost: 0, duplicated: 0, repeated: 0 }
  afterAll(() => {
    const { exports, kills, faults, lost, duplicated, repeated } = figures
    process.stderr.write(
      `${title}: ${exports} exports, ${kills} kills, ${faults} other faults; ` +
        `${lost} rows lost, ${duplicated} duplicated, ${repeated} requests repeated\n`,
    )
    const file = process.env.FAULT_REPORT
    if (file === undefined) return
    appendFileSync(file, `| ${[title, exports, kills, faults, lost, duplicated, repeated].join(' | ')} |\n`)
  })
  return figures
}
