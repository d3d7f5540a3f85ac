import { ExportError, getOrInsert } from '../../core/index.ts'
import { columnIndices, isAddress, partsOf } from './addresses.ts'
import { readCsvTable } from './csv-table.ts'

type DirectoryOptions = {
  /** Columns with addresses; none: those that are known. */
  readonly columns: readonly string[]
  /** The column that stands for a person; null: the first. */
  readonly key: string | null
  /** Whether digests stand in place of addresses. */
  readonly hasDigests: boolean
  /** What rows hold of an address. */
  readonly storedForm: (address: string) => string
  /** For messages. */
  readonly where: string
}

/** An address of a person, as the directory spells it. */
export type DirectoryAddress = { readonly person: number; readonly spelling: string }

/** The people whose rows are looked for, by what rows hold of their addresses. Each line is a person. */
export type Directory = {
  /** The name of the column that stands for a person, and its cells. */
  readonly key: string
  readonly keys: readonly string[]
  readonly addresses: ReadonlyMap<string, readonly DirectoryAddress[]>
  /** People without any address. */
  readonly unaddressed: number
  /** Cells with something else, and the first lines of such. */
  readonly others: number
  readonly linesOfOthers: readonly number[]
}

const MAX_LINES = 10

/** @throws ExportError `config` when it is no such file, has no people, or lacks a column */
export async function readDirectory(
  source: AsyncIterable<Uint8Array>,
  { columns, key, hasDigests, storedForm, where }: DirectoryOptions,
): Promise<Directory> {
  const { header, rows } = await readCsvTable(source, where)
  const indices = columnIndices(header, columns, where)
  const keyIndex = key === null ? 0 : columnIndices(header, [key], where)[0]!
  const isOne = hasDigests ? isDigest : isAddress
  const keys: string[] = []
  const addresses = new Map<string, DirectoryAddress[]>()
  const linesOfOthers: number[] = []
  let others = 0
  let unaddressed = 0
  for await (const { cells, line } of rows) {
    const person = keys.push(cells[keyIndex] ?? '') - 1
    let found = 0
    for (const index of indices) {
      const parts = partsOf(cells[index] ?? '')
      const fitting = parts.filter(isOne)
      found += fitting.length
      for (const spelling of fitting) {
        const form = hasDigests ? spelling.toLowerCase() : storedForm(spelling)
        const known = getOrInsert(addresses, form, () => [])
        if (known.at(-1)?.person !== person) known.push({ person, spelling })
      }
      if (fitting.length === parts.length) continue
      if (others++ < MAX_LINES) linesOfOthers.push(line)
    }
    if (found === 0) unaddressed++
  }
  if (keys.length > 0) return { key: header[keyIndex]!, keys, addresses, unaddressed, others, linesOfOthers }
  throw new ExportError({
    kind: 'config',
    what: 'The directory has no people: there is nothing below its header',
    where,
    next: 'Export it again.',
  })
}

function isDigest(part: string): boolean {
  return /^[0-9a-f]{64}$/i.test(part)
}
