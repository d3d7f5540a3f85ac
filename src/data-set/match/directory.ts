import { ExportError } from '../../core/index.ts'
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

const NONE = -1
const MAX_LINES = 10

/**
 * The people whose rows are looked for, each line of the directory being one. A million addresses are kept in columns:
 * an object for each would take twice the memory.
 */
export class Directory {
  /** The cells of the column that stands for a person. */
  readonly keys: string[] = []
  /** People without any address. */
  unaddressed = 0
  /** Cells with something else than addresses, and the first lines of such. */
  others = 0
  readonly linesOfOthers: number[] = []
  /** By what rows hold of an address: the last of these addresses. */
  readonly #last = new Map<string, number>()
  readonly #people: number[] = []
  readonly #spellings: string[] = []
  /** The address before that has the same form. */
  readonly #before: number[] = []

  /** @param key the name of the column that stands for a person */
  constructor(readonly key: string) {}

  /** What rows hold of all addresses. */
  get forms(): Iterable<string> {
    return this.#last.keys()
  }

  add(form: string, person: number, spelling: string): void {
    const before = this.#last.get(form) ?? NONE
    if (before !== NONE && this.#people[before] === person) return
    this.#before.push(before)
    this.#spellings.push(spelling === form ? form : spelling)
    this.#last.set(form, this.#people.push(person) - 1)
  }

  /** @param form what a row holds */
  addressesOf(form: string): readonly DirectoryAddress[] {
    const found: DirectoryAddress[] = []
    for (let at = this.#last.get(form) ?? NONE; at !== NONE; at = this.#before[at]!)
      found.push({ person: this.#people[at]!, spelling: this.#spellings[at]! })
    return found.reverse()
  }
}

/** @throws ExportError `config` when it is no such file, has no people, or lacks a column */
export async function readDirectory(
  source: AsyncIterable<Uint8Array>,
  { columns, key, hasDigests, storedForm, where }: DirectoryOptions,
): Promise<Directory> {
  const { header, rows } = await readCsvTable(source, where)
  const indices = columnIndices(header, columns, where)
  const keyIndex = key === null ? 0 : columnIndices(header, [key], where)[0]!
  const isOne = hasDigests ? isDigest : isAddress
  const directory = new Directory(header[keyIndex]!)
  for await (const { cells, line } of rows) {
    const person = directory.keys.push(cells[keyIndex] ?? '') - 1
    let found = 0
    for (const index of indices) {
      const parts = partsOf(cells[index] ?? '')
      const fitting = parts.filter(isOne)
      found += fitting.length
      for (const spelling of fitting)
        directory.add(hasDigests ? spelling.toLowerCase() : storedForm(spelling), person, spelling)
      if (fitting.length === parts.length) continue
      if (directory.others++ < MAX_LINES) directory.linesOfOthers.push(line)
    }
    if (found === 0) directory.unaddressed++
  }
  if (directory.keys.length > 0) return directory
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
