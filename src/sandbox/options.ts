import { randomBytes } from 'node:crypto'
import { parseTimestamp } from './data/timeline.ts'
import { DEMO_DOMAINS, seedBits } from './data/words.ts'

/** Every option with its default. Rates are shares between 0 and 1, times are milliseconds. */
const DEFAULTS = {
  /** 0: a free port. Always bound to 127.0.0.1. */
  port: 0,
  /** Credentials per domain. */
  records: 1000,
  /** The same seed and data options give the same data and the same cursors. */
  seed: 'spillway' as number | string,
  /** A ready bearer token; null: a random one. */
  token: null as string | null,
  /** The key that `POST /tokens/generate` exchanges; null: a random one. */
  apiKey: null as string | null,
  /** Search tier; 0 = unlimited. */
  requestsPerSecond: 1,
  /** Basic tier: everything but global searches; 0 = unlimited. */
  basicRequestsPerSecond: 4,
  /** Searches left this month. At 0: status 403, code `QUOTA_EXCEEDED`. */
  quota: 1_000_000,
  /**
   * Rows that one search of the quota covers, along a sequence of cursors, as the documentation says; 0: a page is one
   * search, however many rows it has.
   */
  rowsPerSearch: 100,
  /** How long a token lives; null: exchanged ones 1 hour, the ready one for ever. */
  tokenLifetimeMs: null as number | null,
  domains: DEMO_DOMAINS as readonly string[],
  /** `imported_at` lies in [from, until). */
  from: '2024-01-01',
  until: '2025-01-01',
  /** Distinct sources. */
  sources: 200,
  /** Share of records with awkward text. */
  nastyRate: 0.002,
  /** Share of records whose `hash` is null; `domain` and `source` are null more rarely. */
  nullRate: 0.02,
  /** Share of records that break the schema. */
  invalidRate: 0,
  /** Adds fields that nobody knows. */
  unknownFields: false,
  /** Adds the optional fields of the public documentation (`event_uid`, `pii_tags`, …). */
  publicFields: false,
  /** Share of pages that come empty although `next` is set, at most 0.9. */
  emptyPageRate: 0,
  /** Share of pages that hold fewer items than requested. */
  shortPageRate: 0,
  /** Share of credentials of the feeds that are remediated some time later, a quarter as many ignored. */
  stateRate: 0.1,
  /** The order of an identifier's feed. */
  identifierOrder: 'desc' as 'asc' | 'desc',
  /** How long the feeds accept a cursor; null: for ever. */
  cursorLifetimeMs: null as number | null,
  /** Wait before every response, or a range to draw from. */
  latencyMs: 0 as number | readonly [number, number],
  /** What each row of a response adds to the wait. */
  msPerRow: 0,
  /** A gateway cuts off longer requests after this time: status 504, plain text; 0: there is none. */
  gatewayTimeoutMs: 0,
  /** Share of searches that fail with status 503. */
  errorRate: 0,
  /** Compresses responses for clients that accept gzip. */
  gzip: false,
  /** Signs cursors. Another key refuses the cursors saved under this one; null: from seed and data. */
  cursorKey: null as string | null,
  /** The prefix segment of the base URL. */
  prefix: 'firework',
  /** Milliseconds since 1970, also for the `Date` of responses. Default: the machine's clock. */
  now: (): number => performance.timeOrigin + performance.now(),
}

type Options = typeof DEFAULTS

/** Everything has a default; rates are shares between 0 and 1, times are milliseconds. */
export type SandboxOptions = { readonly [Key in keyof Options]?: Options[Key] | undefined }

/** All options, with their defaults. */
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
const NAME = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/

const CHECKS: { readonly [Key in keyof Options]?: Check } = {
  port: within(65_535, true),
  records: within(500_000_000, true),
  token: ['a text', (token: string | null) => token !== ''],
  apiKey: ['a text', (key: string | null) => key !== ''],
  requestsPerSecond: AMOUNT,
  basicRequestsPerSecond: AMOUNT,
  quota: COUNT,
  rowsPerSearch: COUNT,
  tokenLifetimeMs: LIFETIME,
  cursorLifetimeMs: LIFETIME,
  domains: [
    'domains such as acme.com, in lower case',
    (domains: readonly string[]) => domains.length > 0 && domains.every((name) => NAME.test(name)),
  ],
  sources: ['an integer from 1 on', (value: number) => Number.isInteger(value) && value > 0],
  nastyRate: SHARE,
  nullRate: SHARE,
  invalidRate: SHARE,
  emptyPageRate: within(0.9),
  shortPageRate: SHARE,
  stateRate: SHARE,
  latencyMs: [
    'a number from 0 on, or two',
    (value: number | readonly number[]) => [value].flat().every((ms) => ms >= 0),
  ],
  msPerRow: AMOUNT,
  gatewayTimeoutMs: AMOUNT,
  errorRate: SHARE,
  prefix: ['a segment of a path: a-z, 0-9 and -', (prefix: string) => /^[a-z0-9-]+$/.test(prefix)],
}

/**
 * Fills in the defaults.
 * @throws SandboxOptionError that names an option which is out of range, or that there is none of
 */
export function resolveOptions(options: SandboxOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  for (const name of Object.keys(given))
    if (!Object.hasOwn(DEFAULTS, name)) throw new SandboxOptionError(name, 'one of the known options')
  const values: Options = { ...DEFAULTS, ...given }
  for (const [name, [expected, isRight]] of Object.entries(CHECKS))
    if (!isRight(values[name as keyof Options] as never)) throw new SandboxOptionError(name, expected)
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

/** An option that is out of range, or that there is none of. */
export class SandboxOptionError extends Error {
  readonly option: string
  readonly expected: string

  constructor(option: string, expected: string) {
    super(`${option}: expected ${expected}`)
    this.option = option
    this.expected = expected
  }
}
