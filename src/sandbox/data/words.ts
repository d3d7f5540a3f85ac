/** Made-up words. Names are put together at random, and domains were invented. Nothing here is ever looked up. */
export const DEMO_DOMAINS: readonly string[] = [
  'scatterholt.com',
  'brambleworth.org',
  'quillmere.net',
  'tarnhollow.io',
]

const FIRST_NAMES: readonly string[] =
  `ada adele aiko alma amir anouk arlo aurel beata bela birk bruno carla cato celia cyril dara davor dilan
  dora edda elio elsa emre enzo esme fara felix fleur gael gita greta hana hugo ida ilka imre ines iris
  jano jara jonas juno kaito kara kaspar lara leni lino lotte luca mael mara milo mina nael nela nico noor
  olga omar orla oskar paul petra quinn rafa rhea rio rosa runa sana selma silas tara theo tilda udo uma
  vera vito wanda wim xenia yara yuki zeno zoe`.split(/\s+/)

const LAST_NAMES: readonly string[] =
  `abel alder amsel arden ashdown barlow bask beck birch blythe boon bracken brook burr calder carrow
  castor cliff coble crane dale danvers dorn drake dunmore eaves elder ember fallow farrow fenn finch
  firth flint forde frost gale garth gorse grove hale harrow hawes heath holt hurst ivers jarrow jessop
  keld kerr kestrel lake lark linden loam locke lune marsh meadow merrow mills moor moss nash neve nook
  oakes orchard otter parr peak penn pike plover quarry quill rain reed ridge rook rowan rush sable sedge
  shaw slate sloane snow sorrel spindle stoker storm swale tarn teal thorne tide umber vale vane wade
  warren weir whin wick willow winter wold wren yarrow yew`.split(/\s+/)

export const COMMON_PASSWORDS: readonly string[] =
  `sunflower-42|Kettle2019|orchard!orchard|purple.teapot|winter-2021|letmein-please|hunter-of-moss
  |Copper_Lantern7|tuesday|banana123|open-the-door|Marzipan99|snail mail|qwertz-uiop|changeme!
  |riverside1|mother-of-pearl|GoldenGate5|pa$$word|no-more-rain`
    .split('|')
    .map((name) => name.trim())

export const PASSWORD_WORDS: readonly string[] =
  `acorn amber anchor apron badger basil beacon biscuit bramble button candle canyon cedar clover cobalt
  comet copper cricket daisy dragon ember falcon fennel garnet ginger hazel heron indigo island jasmine
  juniper kettle lagoon lantern lemon maple marble meadow mustard nettle nimbus oyster paprika pebble
  pepper pigeon quartz raven rocket saffron sparrow tangerine thimble thunder turnip velvet violet walnut
  whistle willow`.split(/\s+/)

export const LOGIN_HOSTS: readonly string[] =
  `portal.larkspurbank.net mail.fennimail.org shop.tealmarket.io games.orbitrook.com id.plumwire.net
  forum.kestrelboard.org stream.lumenfold.io news.slatecourier.com cloud.harrowbox.net pay.copperpenny.io
  travel.windlass.org jobs.rowanworks.com photos.glimmerbay.net learn.quartzschool.org health.willowcare.io
  books.inkorchard.com music.dronehollow.net energy.brightwold.org parcels.swiftplover.com maps.fellside.io
  dates.rosewick.net chat.thimbletalk.org wiki.mossarchive.com vpn.tunnelmere.io`.split(/\s+/)

export const SOURCE_PLACES: readonly string[] =
  `Kettle Forum|Tarn Board|Magpie Channel|Lantern Market|Gorse Dump|Oxbow Paste|Cinder List|Sable Stealer Logs
  |Marlin Combo|Hollow Exchange|Brine Archive|Thistle Leaks`
    .split('|')
    .map((name) => name.trim())

/** 32 well-spread bits, by MurmurHash3's finalizer. Every property comes from them, so no record is kept in memory. */
export function hash32(seed: number, position: number, field: number): number {
  let h = seed ^ Math.imul(position, 0x9e3779b1) ^ Math.imul(field + 1, 0x85ebca77)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** The same as a fraction in [0, 1). */
export function fraction(seed: number, position: number, field: number): number {
  return hash32(seed, position, field) / 0x1_0000_0000
}

/** Turns a seed as people write it (number or text) into 32 bits. FNV-1a. */
export function seedBits(seed: number | string): number {
  const text = String(seed)
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return hash32(h, 0, 0)
}

const SUBDOMAIN = 301

const NAMES = FIRST_NAMES.length * LAST_NAMES.length

/** `ada.marsh`, `ilka_reed`, with a number once all pairs are used. For keywords, a person is at every domain. */
export function localPart(person: number): string {
  const first = person % FIRST_NAMES.length
  // Shifted by the first name; otherwise small data sets would hold one family only.
  const last = (Math.floor(person / FIRST_NAMES.length) + first * 37) % LAST_NAMES.length
  const round = Math.floor(person / NAMES)
  const joint = person % 5 === 4 ? '_' : '.'
  return `${FIRST_NAMES[first]}${joint}${LAST_NAMES[last]}${round === 0 ? '' : round}`
}

/** Some people have their address at a subdomain; a domain query finds them under both. */
export function atSubdomain(seed: number, person: number): boolean {
  return hash32(seed, person, SUBDOMAIN) % 16 === 5
}

export const SUBDOMAIN_LABEL = 'mail'

/** Quotes and line ends for CSV, formulas for spreadsheets, surrogates for encoders, lengths. All are harmless. */
export const NASTY_TEXTS: readonly string[] = [
  'say "hello", she said',
  'line one\nline two',
  'windows\r\nline end',
  'lone\rreturn',
  '\ttab first',
  '=1+1',
  '+49 30 000000',
  '-2+3',
  '@sum(A1:A9)',
  '"',
  "it's; DROP --",
  'comma,comma,,',
  ' blank around ',
  '',
  'null',
  'bell\u0007 escape\u001b[31m del\u007f unit\u001f',
  'snow ☃ rocket 🚀 family 👩‍👩‍👧',
  'مرحبا \u202eright to left\u202c שלום',
  'Zoë Ångström ñandú',
  'e\u0301 combining \u200bzero width \ufeffmark',
  'line\u2028separator\u2029paragraph \u0085next',
  'lone high \ud83d end',
  '\udc00 lone low',
  '{"json":"inside"}',
  '<b>bold</b> &amp;',
  '%00%0a $HOME `x`',
  '\\N \\ \\"',
  '漢字かなカナ',
  'x'.repeat(20_000),
  '長い🧵'.repeat(2_000),
]
