import { ExportError } from '../../../core/index.ts'

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

export function digestColumn(fingerprint: string): string {
  return `identity_hmac_${fingerprint}`
}

export function fingerprintIn(name: string): string | null {
  return /^identity_hmac_([0-9a-f]{8})$/i.exec(name)?.[1]?.toLowerCase() ?? null
}

/** Of a name that several columns have, each. @throws ExportError `config` with the columns that are there */
export function columnIndices(
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
