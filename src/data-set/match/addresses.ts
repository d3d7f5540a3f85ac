import { ExportError } from '../../core/index.ts'

/** Columns in which directories have addresses (Entra ID, Active Directory, Okta, Google Workspace), in lower case. */
const KNOWN_COLUMNS = [
  ...['mail', 'userprincipalname', 'proxyaddresses', 'primaryemail', 'primary email', 'login', 'email'],
  ...['emailaddress', 'email address [required]'],
]

/**
 * The indices of columns; of a name that several have, of each.
 * @param names as they were given; none: those that are known to have addresses
 * @throws ExportError `config` with the columns that are there
 */
export function columnIndices(
  header: readonly string[],
  names: readonly string[],
  where: string,
): readonly number[] {
  const indicesOf = (isIt: (other: string) => boolean): readonly number[] =>
    header.flatMap((other, i) => (isIt(other) ? [i] : []))
  if (names.length === 0) {
    const known = knownIndices(header)
    if (known.length > 0) return known
    throw noColumn('No column is known to hold addresses', header, where)
  }
  return names.flatMap((name) => {
    const exact = indicesOf((other) => other === name)
    const found = exact.length > 0 ? exact : indicesOf((other) => other.toLowerCase() === name.toLowerCase())
    if (found.length === 0) throw noColumn(`There is no column ${JSON.stringify(name)}`, header, where)
    return found
  })
}

/** Those that are known to have addresses. */
export function knownIndices(header: readonly string[]): readonly number[] {
  return header.flatMap((name, i) => (KNOWN_COLUMNS.includes(name.toLowerCase()) ? [i] : []))
}

function noColumn(what: string, header: readonly string[], where: string): ExportError {
  const names = header.map((name) => JSON.stringify(name)).join(', ')
  return new ExportError({ kind: 'config', what, where, next: `Name one of ${names} with --column.` })
}

/** What a cell holds. `proxyAddresses` has several, with their kinds: `SMTP:a@b.com;smtp:c@b.com;x500:/o=…`. */
export function partsOf(cell: string): readonly string[] {
  return cell
    .split(/[;,\n]/)
    .map((part) => part.trim().replace(/^(?:smtp|sip|mailto):/i, ''))
    .filter((part) => part !== '' && !OTHER_KIND.test(part))
}

/** Addresses of other systems. */
const OTHER_KIND = /^(?:x400|x500|eum|spo|ccmail|ms|notes|fax|imceaex)[:-]/i

export function isAddress(part: string): boolean {
  return /^[^\s@<>"]+@[^\s@<>"]+$/u.test(part)
}
