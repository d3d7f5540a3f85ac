/** The characters that Windows-1252 has at 0x80 to 0x9f; where it has none, the control character. */
export const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Undoes `&eacute;`, `&#233;` and `&#xe9;`, also without the semicolon, as browsers do. */
export function unescapeHtml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(
    /&(?:#0*(\d{1,7})|#x0*([0-9a-f]{1,6})|([a-z][a-z0-9]{1,31}));?/gi,
    (found, decimal, hex, name) =>
      name === undefined
        ? numbered(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal))
        : named(name, found.slice(1)),
  )
}

function numbered(codePoint: number): string {
  // Numbers of Windows-1252 are common; HTML defines them so (13.2.5.80).
  if (codePoint >= 0x80 && codePoint <= 0x9f) return WINDOWS_1252[codePoint - 0x80]!
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : ''
}

/** @param rest all that follows the ampersand: a name without a semicolon may be followed by letters */
function named(name: string, rest: string): string {
  for (let length = name.length; length > 1; length--) {
    const character = characterOf(name.slice(0, length))
    if (character !== undefined) return character + rest.slice(rest[length] === ';' ? length + 1 : length)
  }
  return `&${rest}`
}

function characterOf(name: string): string | undefined {
  const [, letter, mark] = ACCENTED.exec(name) ?? []
  if (letter !== undefined && mark !== undefined)
    return (letter + MARKS[mark.toLowerCase()]!).normalize('NFC')
  const character = ENTITIES.get(name.toLowerCase())
  return /^[A-Z]/.test(name) ? character?.toUpperCase() : character
}

/** What follows a letter in names such as `eacute`, and the combining mark that it stands for. */
const MARKS: Readonly<Record<string, string>> = {
  acute: '\u0301',
  grave: '\u0300',
  circ: '\u0302',
  uml: '\u0308',
  tilde: '\u0303',
  cedil: '\u0327',
  ring: '\u030a',
  caron: '\u030c',
  breve: '\u0306',
  macr: '\u0304',
  ogon: '\u0328',
  dblac: '\u030b',
  dot: '\u0307',
}
const ACCENTED = new RegExp(`^([a-z])(${Object.keys(MARKS).join('|')})$`, 'i')

/** Names of consecutive characters, by the first. */
const ROWS: Readonly<Record<string, string>> = {
  '\xa0':
    'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest',
  α: 'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega',
  а: 'acy bcy vcy gcy dcy iecy zhcy zcy icy jcy kcy lcy mcy ncy ocy pcy rcy scy tcy ucy fcy khcy tscy chcy shcy shchcy hardcy ycy softcy ecy yucy yacy',
  ё: 'iocy djcy gjcy jukcy dscy iukcy yicy jsercy ljcy njcy tshcy kjcy',
  ў: 'ubrcy dzcy',
}

/** Names, in small letters, of characters that passwords and tokens contain. Source: HTML standard, 13.5. */
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...Object.entries(ROWS).flatMap(([first, names]) =>
    names.split(' ').map((name, i) => [name, String.fromCodePoint(first.codePointAt(0)! + i)] as const),
  ),
  ...Object.entries({
    aelig: 'æ',
    amp: '&',
    apos: "'",
    ast: '*',
    bdquo: '„',
    bsol: '\\',
    bull: '•',
    colon: ':',
    comma: ',',
    commat: '@',
    diacriticalgrave: '`',
    divide: '÷',
    dollar: '$',
    dstrok: 'đ',
    eng: 'ŋ',
    equals: '=',
    eth: 'ð',
    euro: '€',
    excl: '!',
    fjlig: 'fj',
    grave: '`',
    gt: '>',
    hat: '^',
    hellip: '…',
    hstrok: 'ħ',
    ijlig: 'ĳ',
    imath: 'ı',
    inodot: 'ı',
    lbrace: '{',
    lbrack: '[',
    lcub: '{',
    ldquo: '“',
    lowbar: '_',
    lpar: '(',
    lsqb: '[',
    lsquo: '‘',
    lstrok: 'ł',
    lt: '<',
    mdash: '—',
    midast: '*',
    ndash: '–',
    newline: '\n',
    num: '#',
    oelig: 'œ',
    oslash: 'ø',
    percnt: '%',
    period: '.',
    plus: '+',
    quest: '?',
    quot: '"',
    rbrace: '}',
    rbrack: ']',
    rcub: '}',
    rdquo: '”',
    rpar: ')',
    rsqb: ']',
    rsquo: '’',
    semi: ';',
    sol: '/',
    szlig: 'ß',
    tab: '\t',
    thorn: 'þ',
    times: '×',
    trade: '™',
    tstrok: 'ŧ',
    underbar: '_',
    verbar: '|',
    vert: '|',
    verticalline: '|',
  }),
])
