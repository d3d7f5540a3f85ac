import { randomBytes } from 'node:crypto'
import { parseTimestamp } from './data/timeline.ts'
import { DEMO_DOMAINS, seedBits } from './data/words.ts'

/** What an option has to be, if its type does not say it, and whether a value is that. */
type Check = readonly [expected: string, isRight: (value: never) => boolean]

const within = (max: number, isWhole = false): Check => [
  `${isWhole ? 'an integer' : 'a number'} ${max === Number.POSITIVE_INFINITY ? 'from 0 on' : `from 0 to ${max}`}`,
  (value: number) => value >= 0 && value <= max && (!isWhole || Number.isInteger(value)),
]
const SHARE = within(1)
const AMOUNT = within(Number.POSITIVE_INFINITY)
const COUNT = within(Number.POSITIVE_INFINITY, true)
const LIFETIME: Check = ['a number above 0', (value: number | null) => value === null || value > 0]
const TEXT: Check = ['a text', (value: string | null) => value !== '']
const NAMES: Check = [
  'domains such as acme.com, in lower case',
  (names: readonly string[]) =>
    names.length > 0 && names.every((name) => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(name)),
]

const option = <T>(value: T, check: Check = ['', () => true]) => ({ value, check })

const OPTIONS = {
  /** 0: a free port. Always bound to 127.0.0.1. */
  port: option(0, within(65_535, true)),
  /** Credentials per domain. */
  records: option(1000, within(500_000_000, true)),
  /** The same seed and data options give the same data and the same cursors. */
  seed: option<number | string>('spillway'),
  /** A ready bearer token; null: a random one. */
  token: option<string | null>(null, TEXT),
  /** The key that `POST /tokens/generate` exchanges; null: a random one. */
  apiKey: option<string | null>(null, TEXT),
  /** Search tier; 0 = unlimited. */
  requestsPerSecond: option(1, AMOUNT),
  /** Basic tier: everything but global searches; 0 = unlimited. */
  basicRequestsPerSecond: option(4, AMOUNT),
  /** Searches left this month. At 0: status 403, code `QUOTA_EXCEEDED`. */
  quota: option(1_000_000, COUNT),
  /** Rows that one search of the quota covers, along a sequence of cursors; 0: a page is one search. */
  rowsPerSearch: option(100, COUNT),
  /** How long a token lives; null: exchanged ones 1 hour, the ready one for ever. */
  tokenLifetimeMs: option<number | null>(null, LIFETIME),
  domains: option(DEMO_DOMAINS, NAMES),
  /** `imported_at` lies in [from, until). */
  from: option('2024-01-01'),
  until: option('2025-01-01'),
  /** Distinct sources. */
  sources: option(200, ['an integer from 1 on', (value: number) => Number.isInteger(value) && value > 0]),
  /** Share of records with awkward text. */
  nastyRate: option(0.002, SHARE),
  /** Share of records whose `hash` is null; `domain` and `source` are null more rarely. */
  nullRate: option(0.02, SHARE),
  /** Share of records that break the schema. */
  invalidRate: option(0, SHARE),
  /** Adds fields that nobody knows. */
  unknownFields: option(false),
  /** Adds the optional fields of the public documentation (`event_uid`, `pii_tags`, …). */
  publicFields: option(false),
  /** Share of pages that come empty although `next` is set, at most 0.9. */
  emptyPageRate: option(0, within(0.9)),
  /** Share of pages that hold fewer items than requested. */
  shortPageRate: option(0, SHARE),
  /** Share of credentials of the feeds that are remediated some time later, a quarter as many ignored. */
  stateRate: option(0.1, SHARE),
  /** The order of an identifier's feed. */
  identifierOrder: option<'asc' | 'desc'>('desc'),
  /** How long the feeds accept a cursor; null: for ever. */
  cursorLifetimeMs: option<number | null>(null, LIFETIME),
  /** Wait before every response, or a range to draw from. */
  latencyMs: option<number | readonly [number, number]>(0, [
    'a number from 0 on, or two',
    (value: number | readonly number[]) => [value].flat().every((ms) => ms >= 0),
  ]),
  /** What each row of a response adds to the wait. */
  msPerRow: option(0, AMOUNT),
  /** A gateway cuts off longer requests after this time: status 504, plain text; 0: there is none. */
  gatewayTimeoutMs: option(0, AMOUNT),
  /** Share of searches that fail with status 503. */
  errorRate: option(0, SHARE),
  /** Compresses responses for clients that accept gzip. */
  gzip: option(false),
  /** Signs cursors. Another key refuses the cursors saved under this one; null: from seed and data. */
  cursorKey: option<string | null>(null),
  /** Milliseconds since 1970, also for the `Date` of responses. Default: the machine's clock. */
  now: option((): number => performance.timeOrigin + performance.now()),
}

type Options = { [Key in keyof typeof OPTIONS]: (typeof OPTIONS)[Key]['value'] }

/** Everything has a default; rates are shares between 0 and 1, times are milliseconds. */
export type SandboxOptions = { readonly [Key in keyof Options]?: Options[Key] | undefined }

export type Settings = Readonly<
  Omit<Options, 'seed' | 'token' | 'apiKey' | 'cursorKey' | 'from' | 'until'>
> & {
  readonly seed: number
  readonly token: string
  readonly apiKey: string
  readonly cursorKey: string
  /** Microseconds since 1970. */
  readonly from: number
  readonly until: number
}

/** @throws SandboxOptionError that names an option which is out of range, or that there is none of */
export function resolveOptions(options: SandboxOptions): Settings {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !Object.hasOwn(OPTIONS, name))
      throw new SandboxOptionError(name, 'one of the known options')
  const values = Object.fromEntries(
    Object.entries(OPTIONS).map(([name, { value, check }]) => {
      const given = options[name as keyof Options] ?? value
      const [expected, isRight] = check
      if (!isRight(given as never)) throw new SandboxOptionError(name, expected)
      return [name, given]
    }),
  ) as Options
  const from = parseTimestamp(values.from)
  const until = parseTimestamp(values.until)
  if (from === null) throw new SandboxOptionError('from', 'a date or date-time')
  if (until === null || from >= until) throw new SandboxOptionError('until', 'a date or date-time after from')
  const { domains, records } = values
  // Positions are hashed as 32-bit integers; beyond that, records would repeat.
  if (domains.length * records > 2 ** 31)
    throw new SandboxOptionError('records', 'at most 2,147,483,648 in all domains')
  const data = [values.seed, domains, records, from, until]
  return {
    ...values,
    from,
    until,
    seed: seedBits(values.seed),
    token: values.token ?? `sandbox-token-${randomBytes(16).toString('hex')}`,
    apiKey: values.apiKey ?? `sandbox-key-${randomBytes(16).toString('hex')}`,
    cursorKey: values.cursorKey ?? JSON.stringify(data),
  }
}

export class SandboxOptionError extends Error {
  constructor(
    readonly option: string,
    readonly expected: string,
  ) {
    super(`${option}: expected ${expected}`)
  }
}
