/** A calendar month, UTC: `2024-01`. As text they sort by time. */
export type Month = string

export function monthOf(epochMs: number): Month {
  return new Date(epochMs).toISOString().slice(0, 7)
}

/** The first instant of the month after this one: `2024-02-01T00:00:00Z`. */
export function endOfMonth(month: Month): string {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return `${new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 19)}Z`
}

/** The month that lies so many after this one. */
export function monthAfter(month: Month, months: number): Month {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return monthOf(Date.UTC(year, number - 1 + months, 1))
}
