import { crc32 } from 'node:zlib'
import { ExportError, linesText, numberOf } from '../../../core/index.ts'
import { readCsvTable } from './csv-table.ts'
import { addressesIn, digestsIn } from './identities.ts'

type DirectoryOptions = {
  /** Columns with addresses; none: those that are known. */
  readonly columns: readonly string[]
  /** The column that stands for a person; null: the first. */
  readonly key: string | null
  readonly hasDigests: boolean
  /** Whether the keys are written where no address may be. */
  readonly hidesAddresses?: boolean
  /** What rows hold of an address. */
  readonly storedForm: (address: string) => string
  readonly where: string
}

export type DirectoryAddress = { readonly person: number; readonly spelling: string }

export type Directory = {
  /** The column that stands for a person. */
  readonly key: string
  /** Its cells, each once: the people. */
  readonly people: readonly string[]
  readonly addresses: Pick<Addresses, 'of' | 'forms'>
  /** Of the columns of digests, those whose name has the fingerprint of their key. */
  readonly fingerprints: readonly string[]
  /** What is not looked for, and what may not be meant so. Nothing of a person is quoted. */
  readonly warnings: readonly string[]
}

/** @throws ExportError `config` when it is no such file, has no people, lacks a column, or shows a hidden address */
export async function readDirectory(
  source: AsyncIterable<Uint8Array>,
  { columns, key, hasDigests, hidesAddresses = false, storedForm, where }: DirectoryOptions,
): Promise<Directory> {
  const { header, rows } = await readCsvTable(source, where)
  const indices = columnIndices(header, columns, hasDigests, where)
  const keyIndex = key === null ? 0 : columnIndices(header, [key], hasDigests, where)[0]!
  const read = hasDigests ? digestsIn : addressesIn
  const isRead = new Set([...indices, keyIndex])
  const people: string[] = []
  const addresses = new Addresses()
  const byKey = new Map<string, { readonly person: number; readonly others: number; hasAny: boolean }>()
  /** Of each such cell. */
  const unread: number[] = []
  const keysOfSeveral: number[] = []
  const elsewhere = new Map<number, number>()
  for await (const { cells, line } of rows) {
    const cell = cells[keyIndex] ?? ''
    if (hidesAddresses && ADDRESS_LIKE.test(cell)) throw keyWithAddresses(header[keyIndex]!, line, where)
    // Lines of one person differ in addresses alone.
    const others = crc32(cells.filter((other, i) => !isRead.has(i) && !other.includes('@')).join('\0'))
    // Nobody has an empty key in common.
    const id = cell.trim() === '' ? `\0${line}` : cell
    const known = byKey.get(id)
    const entry = known ?? { person: people.push(cell) - 1, others, hasAny: false }
    if (known === undefined) byKey.set(id, entry)
    else if (known.others !== others) keysOfSeveral.push(line)
    for (const index of indices) {
      const { found, unread: left } = read(cells[index] ?? '')
      if (left > 0) unread.push(line)
      if (found.length > 0) entry.hasAny = true
      for (const spelling of found) addresses.add(storedForm(spelling), entry.person, spelling)
    }
    for (let i = 0; i < cells.length; i++) {
      if (indices.includes(i) || !cells[i]!.includes('@')) continue
      const { found, unread: left } = addressesIn(cells[i]!)
      elsewhere.set(i, (elsewhere.get(i) ?? 0) + found.length + left)
    }
  }
  if (people.length === 0)
    throw new ExportError({
      kind: 'config',
      what: 'The directory has no people: there is nothing below its header',
      where,
      next: 'Export it again.',
    })
  // Of a first column that says something else than who it is.
  if (key === null && keysOfSeveral.length > people.length)
    throw new ExportError({
      kind: 'config',
      what: `The first column, ${JSON.stringify(header[keyIndex])}, does not tell people apart: most lines repeat a cell of it`,
      where,
      next: 'Name a column that does with --key, such as an employee number.',
    })
  const one = hasDigests ? 'digest' : 'address'
  const bare = [...byKey.values()].filter(({ hasAny }) => !hasAny).length
  return {
    key: header[keyIndex]!,
    people,
    addresses,
    fingerprints: indices.map((i) => fingerprintIn(header[i]!)).filter((each) => each !== null),
    warnings: [
      ...said(unread, (n) => `${numberOf(n, 'cell')} with something that is no ${one}, not looked for`),
      ...(bare === 0
        ? []
        : [`${numberOf(bare, 'person', 'people')} without ${hasDigests ? 'a digest' : 'an address'}`]),
      ...[...elsewhere].map(
        ([i, n]) =>
          `column ${JSON.stringify(header[i])} has ${numberOf(n, 'address', 'addresses')}, not looked for: --column ${JSON.stringify(header[i])} reads it${columns.length === 0 ? ', with --column for each of the others' : ''}`,
      ),
      ...said(
        keysOfSeveral,
        (n) =>
          `${numberOf(n, 'line repeats', 'lines repeat')} a key with different other cells, and count as the same person: name a column with --key that differs (now ${JSON.stringify(header[keyIndex])})`,
      ),
    ],
  }
}

const NOBODYS: readonly DirectoryAddress[] = []

/** By what rows hold of an address: its form. In lists, since an object for each takes three times the memory. */
class Addresses {
  /** Index of the last address of a form. */
  readonly #last = new Map<string, number>()
  readonly #people: number[] = []
  readonly #spellings: string[] = []
  /** By index: that of the address of the same form before it; -1: none. */
  readonly #before: number[] = []

  /** Each form once for a person. */
  add(form: string, person: number, spelling: string): void {
    const last = this.#last.get(form) ?? -1
    for (let i = last; i >= 0; i = this.#before[i]!) if (this.#people[i] === person) return
    const own = last < 0 ? alone(form) : form
    this.#last.set(own, this.#people.push(person) - 1)
    this.#spellings.push(spelling === form ? own : alone(spelling))
    this.#before.push(last)
  }

  forms(): Iterable<string> {
    return this.#last.keys()
  }

  /** As in the directory. */
  of(form: string): readonly DirectoryAddress[] {
    const last = this.#last.get(form)
    // Most rows are nobody's.
    if (last === undefined) return NOBODYS
    const found: DirectoryAddress[] = []
    for (let i = last; i >= 0; i = this.#before[i]!)
      found.push({ person: this.#people[i]!, spelling: this.#spellings[i]! })
    return found.reverse()
  }
}

/** The text without what it is made of: V8 keeps the whole of which it is a part, and the parts that were joined. */
function alone(text: string): string {
  return Buffer.from(text).toString()
}

function said(lines: readonly number[], what: (count: number) => string): readonly string[] {
  return lines.length === 0 ? [] : [`${what(lines.length)}: ${linesText([...new Set(lines)])}`]
}

/** Also a guest's, whose name has the domain in it. */
const ADDRESS_LIKE = /[@\uff20\ufe6b]|#EXT#/i

function keyWithAddresses(key: string, line: number, where: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The key column ${JSON.stringify(key)} holds an address in line ${line}, and keys are written as they are`,
    where,
    next: 'Name a column without addresses with --key, such as an employee number.',
  })
}

export function digestColumn(fingerprint: string): string {
  return `identity_hmac_${fingerprint}`
}

/**
 * Columns in which directories have addresses of people: Active Directory, Entra ID, Exchange, Google Workspace, GAM,
 * Okta and BambooHR. In the form of {@link folded}.
 */
const KNOWN_COLUMNS: ReadonlySet<string> = new Set([
  ...['mail', 'userprincipalname', 'proxyaddresses', 'othermailbox', 'email', 'emailaddress'],
  ...['othermails', 'othermail', 'alternateemailaddress', 'alternateemailaddresses', 'imaddresses'],
  ...['primarysmtpaddress', 'emailaddresses', 'windowsemailaddress', 'windowsliveid', 'externalemailaddress'],
  ...['microsoftonlineservicesid', 'signinname', 'primaryemail', 'newprimaryemail'],
  ...['recoveryemail', 'homesecondaryemail', 'worksecondaryemail', 'secondaryemail', 'secondemail'],
  ...['aliases.n', 'noneditablealiases.n', 'emails.n.address', 'login', 'user.login', 'user.email'],
  ...['profile.login', 'profile.email', 'profile.secondemail', 'workemail', 'homeemail', 'personalemail'],
  ...['alternateemail', 'emailaliases', 'smtpaddress', 'emailadresse', 'adresseemail', 'correoelectronico'],
])

function fingerprintIn(name: string): string | null {
  return /^identity_hmac_([0-9a-f]{8})$/i.exec(name)?.[1]?.toLowerCase() ?? null
}

/** Of a name that several columns have, each. @throws ExportError `config` with the columns that are there */
function columnIndices(
  header: readonly string[],
  names: readonly string[],
  hasDigests: boolean,
  where: string,
): readonly number[] {
  const indicesOf = (isIt: (other: string) => boolean): readonly number[] =>
    header.flatMap((other, i) => (isIt(other) ? [i] : []))
  if (names.length === 0) {
    const digests = hasDigests ? indicesOf((name) => fingerprintIn(name) !== null) : []
    if (digests.length > 0) return digests
    const known = indicesOf((name) => KNOWN_COLUMNS.has(folded(name)))
    if (known.length > 0) return known
    throw noColumn(`No column is known to hold ${hasDigests ? 'digests' : 'addresses'}`, header, where)
  }
  return names.flatMap((name) => {
    const exact = indicesOf((other) => other === name)
    const found = exact.length > 0 ? exact : indicesOf((other) => other.toLowerCase() === name.toLowerCase())
    if (found.length === 0) throw noColumn(`There is no column ${JSON.stringify(name)}`, header, where)
    return found
  })
}

/** Without what differs between exports: case, separators, marks such as ` [Required]`, the number in a list. */
function folded(name: string): string {
  return name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\[.*\]|[\s_-]|\p{M}/gu, '')
    .replace(/\.\d+/g, '.n')
}

function noColumn(what: string, header: readonly string[], where: string): ExportError {
  const [first = ''] = header
  const names = header.map((name) => JSON.stringify(name)).join(', ')
  const hints: readonly (readonly [boolean, string])[] = [
    [first.startsWith('#'), 'Line 1 seems to be a comment: remove it.'],
    [
      header.length === 1 && first.includes('|'),
      'Its columns seem to be separated by |: export it with commas, semicolons or tabs.',
    ],
    [/^[0-9a-f]{64}$/i.test(first), 'It has no header: make it by `digest --column`.'],
    [header.some((name) => fingerprintIn(name) !== null), 'It holds digests: add --digests.'],
  ]
  const [, next] = hints.find(([isIt]) => isIt) ?? [true, `Name one of ${names} with --column.`]
  return new ExportError({ kind: 'config', what, where, next })
}
