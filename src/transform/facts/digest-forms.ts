/** By the whole form: prefix, length and alphabet. A prefix alone says nothing: `$1$MillionDollars!` is a password. */
export function isDigest(bytes: Buffer, start: number, end: number): boolean {
  const length = end - start
  // Dumps leave blanks and line breaks at ends.
  return (
    length >= MIN_LENGTH && length <= MAX_LENGTH && DIGEST.test(bytes.toString('latin1', start, end).trim())
  )
}

/** Of `{CRYPT}` with the 13 characters of DES. */
const MIN_LENGTH = 20
const MAX_LENGTH = 1024

/** MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512 in hexadecimal digits. */
const HEX = `(?:${[32, 40, 56, 64, 96, 128].map((length) => `[0-9a-f]{${length}}`).join('|')})`
/** A character of crypt's alphabet, of base64, and of either. */
const C = '[./0-9a-z]'
const B = '[+/0-9a-z]'
const P = '[+./0-9a-z]'
const PADDING = '={0,2}'

/** What crypt(3), PHP, and the PHC string format write. */
const CRYPT = oneOf([
  String.raw`\$(?:wp\$)?2[abxy]?\$\d\d\$${C}{53}`,
  String.raw`\$(?:1|apr1)\$[^$]{0,8}\$${C}{22}`,
  String.raw`\$5\$(?:rounds=\d+\$)?[^$]{0,16}\$${C}{43}`,
  String.raw`\$6\$(?:rounds=\d+\$)?[^$]{0,16}\$${C}{86}`,
  String.raw`\$g?y\$${C}+\$${C}*\$${C}{43}`,
  String.raw`\$7\$${C}{11}[^$]*\$${C}{43}`,
  String.raw`\$md5(?:,rounds=\d+)?\$[^$]*\${1,2}${C}{22}`,
  String.raw`\$sha1\$\d+\$[^$]{1,64}\$${C}{28}`,
  String.raw`\$3\$\$[0-9a-f]{32}`,
  // phpass, as in WordPress and phpBB; Drupal, also with MD5 below it.
  String.raw`U?\$[ph]\$${C}{31}`,
  String.raw`U?\$s\$${C}{52}`,
  String.raw`\$(?:argon2(?:id|i|d)|scrypt|bcrypt-sha256|pbkdf2(?:-sha\d+)?)(?:\$[a-z]+=[^$]+|\$\d+)*\$${P}{4,}${PADDING}\$${P}{20,}${PADDING}`,
  String.raw`\$p5k2\$[0-9a-f]*\$[\w./+=-]+\$[\w./+=-]{20,}`,
  // Cisco, types 8 and 9.
  String.raw`\$[89]\$${C}{14}\$${C}{43}`,
  String.raw`\$s0\$[0-9a-f]+\$${B}+${PADDING}\$${B}+${PADDING}`,
  String.raw`\$scram\$\d+\$${P}+\$sha-1=${P}{27}(?:,sha-\d+=${P}+)*`,
  // caching_sha2_password of MySQL.
  String.raw`\$a\$\d{3}\$[^]{20}${C}{43}`,
])

const DIGEST = new RegExp(
  `^${oneOf([
    HEX,
    CRYPT,
    // With a salt or a name on either side; also LM:NT. A locked account has a mark before it.
    `${HEX}:[^]{1,128}`,
    `[^]{1,128}:(?:${HEX}|${CRYPT})`,
    `[!*]{1,2}${CRYPT}`,
    '[^:]+:\\d+:[0-9a-f]{32}:[0-9a-f]{32}:::',
    // Schemes of LDAP, of Atlassian, and those before other forms.
    `\\{MD5\\}${B}{22}==`,
    `\\{SHA\\}${B}{27}=`,
    `\\{SHA256\\}${B}{43}=`,
    `\\{SHA384\\}${B}{64}`,
    `\\{SHA512\\}${B}{86}==`,
    `\\{SMD5\\}${B}{23,}${PADDING}`,
    `\\{SSHA\\}${B}{28,}${PADDING}`,
    `\\{SSHA256\\}${B}{44,}${PADDING}`,
    `\\{SSHA384\\}${B}{65,}${PADDING}`,
    `\\{SSHA512\\}${B}{87,}${PADDING}`,
    `\\{PKCS5S2\\}${B}{64}`,
    `\\{FSHP[\\d|]+\\}${B}{28,}${PADDING}`,
    String.raw`\{PBKDF2(?:-SHA\d+)?\}\d+\$${P}+\$${P}{20,}${PADDING}`,
    `\\{CRYPT\\}${C}{13}`,
    `\\{[\\w.-]+\\}(?:${CRYPT}|${HEX})`,
    // Django and Werkzeug.
    String.raw`(?:md5|sha1|sha224|sha256|sha384|sha512)\$[^$]*\$${HEX}`,
    String.raw`pbkdf2_sha\d+\$\d+\$[^$]+\$${B}{20,}${PADDING}`,
    String.raw`pbkdf2:\w+(?::\d+)?\$[^$]+\$${HEX}`,
    String.raw`scrypt(?::\d+){3}\$[^$]+\$${HEX}`,
    String.raw`scrypt\$[^$]+\$\d+\$\d+\$\d+\$${B}{20,}${PADDING}`,
    String.raw`[a-z]\w*\$?${CRYPT}`,
    // ASP.NET Identity, versions 2 and 3.
    `A[A-P]${B}{63}[AQgw]==`,
    `AQAAAA${B}{75}[AQgw]==`,
    // Databases: SQL Server, MySQL, Oracle, PostgreSQL.
    '0x0100[0-9a-f]{48}(?:[0-9a-f]{40})?',
    '0x0200[0-9a-f]{136}',
    `0x${HEX}`,
    '\\*[0-9a-f]{40}',
    'S:[0-9a-f]{60}(?:;[HT]:[0-9a-f]+)*;?',
    'T:[0-9a-f]{160}',
    'md5[0-9a-f]{32}',
    String.raw`SCRAM-SHA-256\$\d+:${B}+${PADDING}\$${B}+${PADDING}:${B}+${PADDING}`,
    String.raw`grub\.pbkdf2\.sha\d+\.\d+\.[0-9a-f]+\.[0-9a-f]{32,}`,
  ])}$`,
  'i',
)

function oneOf(forms: readonly string[]): string {
  return `(?:${forms.join('|')})`
}

/** Whether the type of a secret, as the service names it, is that of a digest. Of unknown types nothing is said. */
export function saysDigest(hashType: string): boolean {
  return DIGEST_TYPES.has(hashType.toLowerCase())
}

const DIGEST_TYPES: ReadonlySet<string> = new Set([
  ...['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'ntlm', 'lm', 'bcrypt', 'scrypt'],
  ...['argon2', 'argon2i', 'argon2d', 'argon2id', 'pbkdf2', 'phpass', 'mysql', 'mssql', 'crypt'],
  ...['md5crypt', 'sha256crypt', 'sha512crypt'],
])
