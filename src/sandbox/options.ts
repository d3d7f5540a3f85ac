import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { parseTimestamp } from './data/timeline.ts'
import { DEMO_DOMAINS, seedBits } from './data/words.ts'

/** Everything has a default; rates are shares between 0 and 1, times are milliseconds. */
export type SandboxOptions = { [Key in keyof Options]?: Options[Key] | undefined }

type Options = {
  /** Default 0: a free port. Always bound to 127.0.0.1. */
  port: number
  /** Credentials per domain. Default 1000. */
  records: number
  /** The same seed and data options give the same data and the same cursors. */
  seed: number | string
  /** A ready bearer token. Default: random. */
  token: string
  /** The key that `POST /tokens/generate` exchanges. Default: random. */
  apiKey: string
  /** Search tier. Default 1; 0 = unlimited. */
  requestsPerSecond: number
  /** Basic tier: everything but global searches. Default 4; 0 = unlimited. */
  basicRequestsPerSecond: number
  /** Searches left this month. Default 1,000,000. At 0: status 403, code `QUOTA_EXCEEDED`. */
  quota: number
  /**
   * Rows that one search of the quota covers, along a sequence of cursors. Default 100, as the documentation says; 0: a
   * page is one search, however many rows it has.
   */
  rowsPerSearch: number
  /** How long a token lives. Default: exchanged ones 1 hour, the ready one for ever. */
  tokenLifetimeMs: number
  domains: readonly string[]
  /** `imported_at` lies in [from, until). Default 2024-01-01 to 2025-01-01. */
  from: string
  until: string
  /** Distinct sources. Default 200. */
  sources: number
  /** Share of records with awkward text. Default 0.002. */
  nastyRate: number
  /** Share of records whose `hash` is null; `domain` and `source` are null more rarely. Default 0.02. */
  nullRate: number
  /** Share of records that break the schema. Default 0. */
  invalidRate: number
  /** Adds fields that nobody knows. */
  unknownFields: boolean
  /** Adds the optional fields of the public documentation (`event_uid`, `pii_tags`, …). */
  publicFields: boolean
  /** Share of pages that come empty although `next` is set. Default 0, at most 0.9. */
  emptyPageRate: number
  /** Share of pages that hold fewer items than requested. Default 0. */
  shortPageRate: number
  /** How the last page says that it is the last. Default 'null'. */
  lastNext: 'null' | 'missing'
  /** Share of credentials that the feeds get up to 45 days after their import. Default 0. */
  lateRate: number
  /** Share of credentials of the feeds that are remediated some time later, a quarter as many ignored. Default 0.1. */
  stateRate: number
  /** The order of an identifier's feed. Default 'desc'. */
  identifierOrder: 'asc' | 'desc'
  /** How long the feeds accept a cursor. Default null: for ever. */
  cursorLifetimeMs: number | null
  /** A broken service: `filters` are checked, then ignored. */
  ignoreFilters: boolean
  /** Wait before every response, or a range to draw from. Default 0. */
  latencyMs: number | readonly [number, number]
  /** What each row of a response adds to the wait. Default 0. */
  msPerRow: number
  /** A gateway cuts off longer requests after this time: status 504, plain text. Default 0: there is none. */
  gatewayTimeoutMs: number
  /** Share of searches that fail with status 503. Default 0. */
  errorRate: number
  /** Compresses responses for clients that accept gzip. Default false. */
  gzip: boolean
  /** Signs cursors. Another key refuses the cursors saved under this one. Default: from seed and data. */
  cursorKey: string
  /** The prefix segment of the base URL. Default 'firework'. */
  prefix: string
  /** Milliseconds since 1970, also for the `Date` of responses. Default: the machine's clock. */
  now: () => number
}

/** All options, with their defaults. */
export type Settings = Readonly<Omit<Options, 'seed' | 'tokenLifetimeMs' | 'from' | 'until'>> & {
  readonly seed: number
  /** Microseconds since 1970. */
  readonly from: number
  readonly until: number
  readonly tokenLifetimeMs: number | null
}

const share = z.number().min(0).max(1)
const count = z.number().int().min(0)
const schema = z.strictObject({
  port: count.max(65_535).default(0),
  records: count.max(500_000_000).default(1000),
  seed: z.union([z.number(), z.string()]).default('spillway'),
  token: z.string().min(1).optional(),
  apiKey: z.string().min(1).optional(),
  requestsPerSecond: z.number().min(0).default(1),
  basicRequestsPerSecond: z.number().min(0).default(4),
  quota: count.default(1_000_000),
  rowsPerSearch: count.default(100),
  tokenLifetimeMs: z.number().positive().nullable().default(null),
  domains: z
    .array(z.string().regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/))
    .min(1)
    .default([...DEMO_DOMAINS]),
  from: z.string().default('2024-01-01'),
  until: z.string().default('2025-01-01'),
  sources: count.min(1).default(200),
  nastyRate: share.default(0.002),
  nullRate: share.default(0.02),
  invalidRate: share.default(0),
  unknownFields: z.boolean().default(false),
  publicFields: z.boolean().default(false),
  emptyPageRate: share.max(0.9).default(0),
  shortPageRate: share.default(0),
  lastNext: z.enum(['null', 'missing']).default('null'),
  lateRate: share.default(0),
  stateRate: share.default(0.1),
  identifierOrder: z.enum(['asc', 'desc']).default('desc'),
  cursorLifetimeMs: z.number().positive().nullable().default(null),
  ignoreFilters: z.boolean().default(false),
  latencyMs: z.union([z.number().min(0), z.tuple([z.number().min(0), z.number().min(0)])]).default(0),
  msPerRow: z.number().min(0).default(0),
  gatewayTimeoutMs: z.number().min(0).default(0),
  errorRate: share.default(0),
  gzip: z.boolean().default(false),
  cursorKey: z.string().optional(),
  prefix: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .default('firework'),
  now: z.custom<() => number>((now) => typeof now === 'function').default(() => machineNow),
})

/**
 * Fills in the defaults.
 * @throws SandboxOptionError that names the options which are out of range
 */
export function resolveOptions(options: SandboxOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const parsed = schema.safeParse(given)
  if (!parsed.success) throw new SandboxOptionError(faultsOf(parsed.error))
  const values = parsed.data
  const from = parseTimestamp(values.from)
  const until = parseTimestamp(values.until)
  if (from === null || until === null || from >= until) {
    throw new SandboxOptionError('from and until must be ISO 8601 date-times, from before until')
  }
  const { domains } = values
  // Positions are hashed as 32-bit integers; beyond that, records would repeat.
  if (domains.length * values.records > 2 ** 31) {
    throw new SandboxOptionError('records times domains must not pass 2,147,483,648')
  }
  const data = [values.seed, domains, values.records, from, until]
  return {
    ...values,
    domains,
    from,
    until,
    seed: seedBits(values.seed),
    token: values.token ?? `sandbox-token-${randomBytes(16).toString('hex')}`,
    apiKey: values.apiKey ?? `sandbox-key-${randomBytes(16).toString('hex')}`,
    cursorKey: values.cursorKey ?? JSON.stringify(data),
  }
}

/** An option that is out of range, or that there is none of. */
export class SandboxOptionError extends Error {}

function faultsOf({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': ')).join('; ')
}

function machineNow(): number {
  return performance.timeOrigin + performance.now()
}
