/*
 * Responses of the search as bytes, derived from a seed: mostly what the service sends, often in an unusual
 * notation, sometimes invalid, sometimes not JSON at all.
 */
import fc from 'fast-check'
import type { Random } from '../support/random.ts'

/** The first instant of the pages; the last is up to ten seconds later. */
export const EPOCH = Date.UTC(2024, 6, 22, 19, 25, 52) * 1000

/** Up to this many thousandths, each as likely as the others: most arbitrary doubles are close to zero. */
export function wildness(thousandths: number): fc.Arbitrary<number> {
  return fc.integer({ min: 0, max: thousandths }).map((share) => share / 1000)
}

/**
 * @param wildness share of unusual values, 0 to 1
 * @param items the maximum
 */
export function randomPage(next: Random, wildness: number, items = 7): Buffer {
  const writer = new Writer(next, wildness, items)
  const body = Buffer.from(writer.page(), 'utf8')
  return next() < wildness ? damaged(body, next) : body
}

export function pick<T>(next: Random, choices: readonly T[]): T {
  return choices[Math.floor(next() * choices.length)]!
}

class Writer {
  private readonly pool: readonly string[]
  private readonly gaps: readonly string[]
  private clock = EPOCH
  private readonly ids: bigint

  constructor(
    private readonly next: Random,
    private readonly wildness: number,
    private readonly items: number,
  ) {
    this.gaps = pick(next, [[''], [''], ['', ' '], ['', ' ', '\n', '\t', '\r\n   ']])
    this.ids = pick(next, [33880703907n, 33880703907n, 2n ** 53n - 2n, 2n ** 63n - 4n])
    this.pool = Array.from({ length: 3 }, (_, i) => this.source(`leak_${i}`))
  }

  page(): string {
    const items = Array.from({ length: Math.floor(this.next() * (this.items + 1)) }, () => this.item())
    const fields: [string, string][] = [
      ['"items"', this.list(items)],
      ['"next"', pick(this.next, ['null', '"WzE3"', this.text('é/+')])],
    ]
    if (this.isWild()) fields.push(pick(this.next, [fields[0]!, fields[1]!]))
    if (this.isWild()) fields.splice(Math.floor(this.next() * 2), 1)
    if (this.isWild())
      fields.push([pick(this.next, ['"total"', '"__proto__"', '"\\u0069tems"']), this.anything()])
    if (this.isWild()) fields.push([pick(this.next, ['"next"', '"items"']), this.anything()])
    if (this.next() < 0.3) fields.reverse()
    return `${this.gap()}${this.object(fields)}${this.gap()}`
  }

  private item(): string {
    if (this.isWild() && this.next() < 0.2) return this.anything()
    const sourceId = `leak_${Math.floor(this.next() * 3)}`
    const source = this.next() < 0.8 ? this.pool[Number(sourceId.slice(5))]! : this.source(sourceId)
    let fields: [string, string][] = [
      ['"id"', this.isWild() ? pick(this.next, NUMBERS) : this.id()],
      ['"domain"', this.or(this.text(this.words()), ['null'])],
      ['"identity_name"', this.text(`${this.words()}@scatterholt.com`)],
      ['"hash"', this.or(this.text(this.words()), ['null', '""', '"12345"', '"123456"', ...SECRETS])],
      ['"hash_type"', this.or('null', ['"unknown"', '"md5"', '"md\\u0035"', '"SHA-256 ä"'])],
      ['"imported_at"', this.instant()],
      [
        '"known_password_id"',
        this.isWild() ? pick(this.next, NUMBERS) : this.or('null', ['17', '"17"', '-3']),
      ],
      ['"source_id"', this.text(sourceId)],
      ['"source"', this.or(source, ['null', this.isWild() ? '{}' : 'null'])],
    ]
    if (this.next() < 0.3) fields.push(['"auth_domains"', this.texts()], ['"urls"', this.texts()])
    if (this.next() < 0.3)
      fields.push(['"event_uid"', this.text(this.words())], ['"details"', this.details()])
    if (this.isWild()) fields.push(['"credential_hash"', this.anything()], ['"event_uid"', this.anything()])
    if (this.isWild()) fields = fields.filter(() => this.next() < 0.9)
    if (this.isWild()) fields.push([this.unknownKey(), this.anything()], [this.unknownKey(), this.anything()])
    if (this.isWild())
      fields.push([pick(this.next, fields)?.[0] ?? '"id"', pick(this.next, ['null', '1', '"x"'])])
    if (this.isWild())
      fields = fields.map(([key, value]) => [key, this.next() < 0.1 ? this.anything() : value])
    if (this.isWild()) fields = fields.map(([key, value]) => [key.replace('i', '\\u0069'), value])
    if (this.next() < 0.2) fields.sort(() => this.next() - 0.5)
    return this.object(fields)
  }

  private id(): string {
    return String((this.next() < 0.5 ? 33880703907n : this.ids) + BigInt(Math.floor(this.next() * 4)))
  }

  private source(id: string): string {
    const fields: [string, string][] = [
      ['"id"', this.text(id)],
      ['"name"', this.or(this.text(this.words()), ['null'])],
      ['"description_en"', this.or(this.text(this.words().repeat(4)), ['null'])],
      ['"description_fr"', this.or('null', [this.text(this.words())])],
      ['"is_alert_enabled"', this.or('true', ['false', 'null'])],
      [
        '"breached_at"',
        this.or('null', ['"2020-01-02"', '"2021-01-01T00:00:00+02:00"', '"9999-12-31T23:59:59.999999Z"']),
      ],
      ['"leaked_at"', this.or('null', ['"2020-02-29T00:00:00Z"'])],
    ]
    if (this.isWild()) fields.splice(Math.floor(this.next() * 7), 1)
    if (this.isWild()) fields.push([this.unknownKey(), this.anything()])
    if (this.next() < 0.2) fields.push(['"url"', this.text('https://a')], ['"pii_tags"', this.texts()])
    if (this.isWild())
      fields.push([pick(this.next, ['"id"', '"name"', '"url"', '"pii_tags"']), this.anything()])
    return this.object(fields)
  }

  private details(): string {
    const more = this.object([
      ['"seen_at"', '"2024-07-22T19:25:52.5Z"'],
      ['"note"', this.text(this.words())],
    ])
    const fields: [string, string][] = [
      ['"severity"', this.text(this.words())],
      ['"level"', pick(this.next, ['0', '-7', '1e2', '123456789012345', '9223372036854775807'])],
      ['"is_open"', pick(this.next, ['true', 'false', 'null'])],
      ['"more"', this.or(more, ['null'])],
      ['"other"', this.or('1.50', ['[1, {"a" : 1e400}]', '"x"'])],
    ]
    if (this.isWild()) return this.anything()
    if (this.isWild()) fields.push([pick(this.next, fields)[0], this.anything()])
    if (this.isWild()) fields.splice(Math.floor(this.next() * 5), 1)
    return this.object(fields)
  }

  private instant(): string {
    if (this.isWild()) return pick(this.next, INSTANTS)
    if (this.next() < 0.7) this.clock += Math.floor(this.next() * 1_500_000)
    const ms = Math.floor(this.clock / 1000)
    const fraction = String(this.clock % 1000).padStart(3, '0')
    if (this.next() < 0.2) {
      // The same instant with an offset of two hours.
      return `"${new Date(ms + 7_200_000).toISOString().slice(0, -1)}${fraction}+02:00"`
    }
    return `"${new Date(ms).toISOString().slice(0, -1)}${fraction}${pick(this.next, ['Z', '+00:00'])}"`
  }

  private texts(): string {
    if (this.isWild()) return pick(this.next, ['[null]', '["a",1]', '["a",]', '["a" "b"]', '[,]', '"a"'])
    const texts = Array.from({ length: Math.floor(this.next() * 4) }, () => this.text(this.words()))
    return this.or(this.list(texts), ['null'])
  }

  private words(): string {
    return Array.from({ length: Math.floor(this.next() * 4) }, () => pick(this.next, WORDS)).join('')
  }

  /** The JSON of a string, in one of its many equivalent notations. */
  private text(text: string): string {
    if (this.next() < 0.5) return JSON.stringify(text)
    const units = text.split('').map((unit, i) => {
      if (this.isWild() && this.next() < 0.05) return pick(this.next, BAD_UNITS)
      const isSurrogate = unit >= '\ud800' && unit <= '\udfff'
      // Half a surrogate pair has no UTF-8, and escaping one half splits the pair.
      if (isSurrogate || unit < ' ' || this.next() < 0.1) return this.escape(text, i)
      return unit === '"' || unit === '\\' ? `\\${unit}` : unit
    })
    return `"${units.join('')}"`
  }

  private escape(text: string, at: number): string {
    const hex = text.charCodeAt(at).toString(16).padStart(4, '0')
    return `\\u${this.next() < 0.5 ? hex : hex.toUpperCase()}`
  }

  private unknownKey(): string {
    return pick(this.next, [
      ...['"score"', '"tags"', '"7"', '"\\u0001x"', '"__proto__"', '"constructor"', '""', '"ключ"'],
    ])
  }

  private anything(): string {
    return pick(this.next, ANYTHING)
  }

  private list(values: readonly string[]): string {
    return `[${this.gap()}${values.join(`${this.gap()},${this.gap()}`)}${this.gap()}]`
  }

  private object(fields: readonly (readonly [string, string])[]): string {
    const members = fields.map(
      ([key, value]) => `${this.gap()}${key}${this.gap()}:${this.gap()}${value}${this.gap()}`,
    )
    return `{${members.join(',')}${fields.length === 0 ? this.gap() : ''}}`
  }

  private gap(): string {
    return this.isWild() && this.next() < 0.01
      ? pick(this.next, ['\u00a0', '\f', '\v', '\ufeff', ','])
      : pick(this.next, this.gaps)
  }

  private or(usual: string, others: readonly string[]): string {
    return this.next() < 0.8 ? usual : pick(this.next, others)
  }

  private isWild(): boolean {
    return this.next() < this.wildness
  }
}

const WORDS = [
  ...['acorn', 'a', 'é', 'ß"', '\\', '/', '東京', '🚀', '\ud83d', '\udc00', '\ud83d\ud83d\ude80', '\n\t'],
  ...['\u0000', '\u007f\u0080', '\u2028', '[REDACTED]'],
  'x'.repeat(70),
  'Ω'.repeat(40),
]
const BAD_UNITS = ['\\x', '\\u12', '\\u00g0', '\n', '\u0001', '\\', '\\U0041', '"']
const NUMBERS = [
  ...['0', '-0', '1.0', '1.5', '1e3', '1E+2', '10e-1', '01', '+1', '.5', '5.', '1e', '1e999', '-', '--1'],
  ...['0x10', '999999999999999', '1000000000000000', '9007199254740991', '9007199254740992'],
  ...['9007199254740993', '9007199254740994', '-9007199254740993', '9223372036854775807'],
  ...['9223372036854775808', '-9223372036854775808', '-9223372036854775809', '0009007199254740993'],
  ...['1234567890123456789', '12345678901234567.0', '9.007199254740993e15', '1000000000000000.0'],
  ...['1.00000000000000000001', '9007199254740990.5', '1e-400', '-2e-324', '5e-324', '0e-400', '1.5E-999'],
  ...['100000000000000000e-3', '-9007199254740991', '123456789012345678901234567890', 'NaN', 'Infinity'],
]
const INSTANTS = [
  ...['"2024-07-22T19:25:52"', '"2024-07-22 19:25:52.5Z"', '"2024-07-22t19:25:52z"', '"2024-07-22"'],
  ...['"2024-02-30T00:00:00Z"', '"2024-07-22T24:00:00Z"', '"2024-07-22T23:59:60Z"'],
  ...['"2024-07-22T19:25:52.Z"', '"2024-07-22T19:25:52.123456789Z"', '"2024-07-22T19:25:52.1234567890Z"'],
  ...['"2024-07-22T19:25:52,25+0030"', '"2024-07-22T19:25:52.1+24:00"', '"2024-07-22T19:25:52.1-23:59"'],
  ...['"2024-07-22T19:25:52.1+02"', '"2024-07-22T19:25:52.1+02:00 "', '"0001-01-01T00:00:00Z"'],
  ...['"9999-12-31T23:59:59.999999Z"', '"9999-12-31T23:59:59-00:01"', '"1683-01-01T00:00:00.000001Z"'],
  ...['"2255-06-05T23:47:34.740992Z"', '"2024-07-22T19:25:52.893\\u0034Z"', '1721676352', 'null', '""'],
]
/** Of every kind that columns of facts tell. */
const SECRETS = [
  ...['"Aé1!"', '"\\u0041b1\\n"', '"$2b$12$x"', '"{SSHA}"', '"pbkdf2:1"', '"$6"', '"\\u0024argon2id"'],
  ...['"0123456789abcdefABCDEF0123456789"', '"0123456789abcdefABCDEF012345678g"', '"\\ud83d\\ude80Ab"'],
]

const ANYTHING = [
  ...['null', 'true', 'false', 'nul', 'truee', '{}', '[]', '[1,2,{"a":[null]}]', '{"a":{"b":"c"},"a":1}'],
  ...['{"hash":"secret"}', '[1,]', '{"a":1,}', '{"a"}', '"text"', '"\\ud800"', '""'],
  ...[`${'['.repeat(70)}${']'.repeat(70)}`, `${'['.repeat(200)}${']'.repeat(199)}`],
  `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`,
  ...NUMBERS,
]

/** The bytes after an error in transmission. */
function damaged(body: Buffer, next: Random): Buffer {
  const at = Math.floor(next() * body.length)
  const copy = Buffer.from(body)
  switch (Math.floor(next() * 6)) {
    case 0:
      return copy.subarray(0, at)
    case 1:
      copy[at] = Math.floor(next() * 256)
      return copy
    case 2:
      copy[at]! ^= 1 << Math.floor(next() * 8)
      return copy
    case 3:
      return Buffer.concat([copy.subarray(0, at), Buffer.from([Math.floor(next() * 256)]), copy.subarray(at)])
    case 4:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(at + 1)])
    default:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), copy])
  }
}
