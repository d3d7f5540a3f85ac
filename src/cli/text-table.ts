import { plainLine } from './plain-text.ts'

const GAP = '  '
const LEAST = 6

/**
 * Lines of an aligned table that fits so many columns: the widest cells are cut first. Numbers stand on the right.
 * @param rows cells as they are; null and undefined are empty
 */
export function textTable(
  header: readonly string[],
  rows: readonly (readonly unknown[])[],
  columns: number,
): readonly string[] {
  const cells = [header, ...rows].map((row) => row.map(cellText))
  const widths = header.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)))
  const isRight = header.map(
    (_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null),
  )
  const room = (): number => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  while (room() > columns && Math.max(...widths) > LEAST) {
    const widest = widths.indexOf(Math.max(...widths))
    widths[widest] = Math.max(LEAST, widths[widest]! - Math.max(1, Math.floor((room() - columns) / 2)))
  }
  return cells.map((row) =>
    row
      .map((cell, i) => fitted(cell, widths[i]!, isRight[i]!))
      .join(GAP)
      .trimEnd(),
  )
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return plainLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

function fitted(cell: string, width: number, isRight: boolean): string {
  const text = cell.length > width ? `${cell.slice(0, width - 1)}…` : cell
  return isRight ? text.padStart(width) : text.padEnd(width)
}
