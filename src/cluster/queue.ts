import querystring from 'node:querystring'
import type * as Bull from 'bullmq'
import type { Redis } from 'ioredis'
import {
  type Clock,
  codeOf,
  ExportError,
  getOrInsert,
  isExportError,
  isLoopback,
  learnSecret,
  requireSet,
} from '../core/index.ts'
import { lacksTls, withTls } from '../warehouse/index.ts'

export const QUEUE_VARIABLE = 'SPILLWAY_QUEUE_URL'

/** The queue of the jobs: BullMQ, on Redis or PostgreSQL. */
export type Queue = {
  /** Its address without credentials. */
  readonly label: string
  /** One job for each organization that has pending pipelines. */
  readonly organizations: Bull.Queue
  /** No worker takes jobs from this queue: the owner of the organization's job reads it. */
  pipelinesOf(organization: string): Bull.Queue
  /** @param onFailure called with an error that does not pass; the worker has closed then */
  worker(
    process: (job: Bull.Job, token: string) => Promise<unknown>,
    options: WorkerTimes,
    onFailure: (error: unknown) => void,
  ): Bull.Worker
  /** The server's time (epoch ms). */
  now(): Promise<number>
  /** Whether leases are measured by the clocks of the workers. */
  readonly isTimedByWorkers: boolean
  close(): Promise<void>
}

type WorkerTimes = Pick<Bull.WorkerOptions, 'concurrency' | 'lockDuration' | 'stalledInterval' | 'name'>

const CONNECT_MS = 5_000
const RESPONSE_MS = 10_000
/** So many workers may die with a job, which is one time slice of an organization; then BullMQ ends it as failed. */
const MAX_STALLS = 30
const CONNECTIONS = 8
const WARN_MS = 60_000
const PROBE_MS = 1_000
/** In PostgreSQL: BullMQ's default, which other tools expect. */
const SCHEMA = 'bullmq'
const PREFIX = 'spillway'
const ORGANIZATIONS = 'organizations'
/** Codes of failures that do not pass by themselves: no such database, no rights in it, and those of TLS. */
const LASTING = /^(?:3D000|42501|EPROTO|ERR_(?:SSL|TLS|OSSL)_\w+|UNABLE_TO_\w+|\w*CERT\w*)$/
/** Answers of Redis that pass by themselves: it starts, fails over, or is busy. */
const PASSING = /^(?:LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|TRYAGAIN|BUSY|NOREPLICAS|OOM)$/

/** Whether an error is an answer of the server, and the same request would get the same one. */
function isFinalAnswer(error: unknown): boolean {
  const code = queueCodeOf(error)
  return LASTING.test(code) || (error instanceof Error && error.name === 'ReplyError' && !PASSING.test(code))
}

type QueueOptions = {
  readonly clock: Clock
  readonly password: string | null
  readonly warn: (message: string) => void
  /** Waits for a server that is away, until the signal aborts. Default: fails at once. */
  readonly wait?: AbortSignal | undefined
}

/** TLS but for loopback and `sslmode=disable`. @throws ExportError `config`, `target`, `credentials` */
export async function openQueue(url: string | null, options: QueueOptions): Promise<Queue> {
  const next = 'Set it to redis://host:6379, rediss://… or postgres://user@host:port/database.'
  const where = `variable ${QUEUE_VARIABLE}`
  const given = requireSet(QUEUE_VARIABLE, url, where, next)
  const parsed = URL.canParse(given) ? new URL(given) : null
  const isRedis = /^rediss?:$/.test(parsed?.protocol ?? '')
  if (parsed === null || !(isRedis || /^postgres(?:ql)?:$/.test(parsed.protocol))) {
    throw new ExportError({ kind: 'config', what: `${QUEUE_VARIABLE} is no address of a queue`, where, next })
  }
  const { password } = parsed
  for (const secret of [password, querystring.unescape(password), options.password, process.env.PGPASSWORD]) {
    learnSecret(secret ?? '')
  }
  const label = `${parsed.host}${parsed.pathname.replace(/^\/$/, '')}`
  const { clock, warn, wait } = options
  for (let warnedMs = Number.NEGATIVE_INFINITY; ; ) {
    try {
      const bull = await import('bullmq')
      const server = isRedis ? await connectRedis(parsed, options) : await connectPostgres(bull, parsed)
      return queueOn(bull, server, label, options)
    } catch (cause) {
      const error = asExportError(cause, label)
      const isAway = isExportError(error, 'target') && !isFinalAnswer(error.cause)
      if (wait === undefined || !isAway) throw error
      if (clock.monotonicMs() - warnedMs >= WARN_MS) {
        warn(`${error.what} (${label}); the worker waits for it`)
        warnedMs = clock.monotonicMs()
      }
      await clock.sleep(PROBE_MS, wait)
    }
  }
}

type Server = Pick<Queue, 'now' | 'isTimedByWorkers'> & {
  readonly connection: Bull.ConnectionOptions
  /** undefined: Redis. */
  readonly backend: undefined
  isConnected(): Promise<boolean>
  end(): Promise<void>
}

/** What a user of Redis has to be allowed, asked for once: BullMQ would ask in a loop. Nothing is changed. */
const NEEDED: readonly ((redis: Redis) => Promise<unknown>)[] = [
  (redis) => redis.info('server'),
  (redis) => redis.time(),
  (redis) => redis.eval("return redis.call('EXISTS', KEYS[1])", 1, `${PREFIX}:${ORGANIZATIONS}:meta`),
  (redis) => redis.hgetall(`${PREFIX}:${ORGANIZATIONS}:meta`),
  (redis) => redis.bzpopmin(`${PREFIX}:${ORGANIZATIONS}:asked`, 0.01),
]

async function connectRedis(given: URL, { password, wait }: QueueOptions): Promise<Server> {
  const isEncrypted = given.protocol === 'rediss:' || given.searchParams.get('sslmode') === 'disable'
  if (!isEncrypted && !isLoopback(given.hostname))
    throw inClear('redis:// is not encrypted', 'Set it to rediss://…')
  const url = new URL(given)
  if (url.password === '') url.password = encodeURIComponent(password ?? '')
  const { Redis: Client } = await import('ioredis')
  const redis = new Client(url.href, {
    // Servers and proxies older than Redis 6 do not know HELLO; BullMQ needs nothing that RESP3 adds.
    protocol: 2,
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_MS,
    retryStrategy: (times) => (wait?.aborted ? null : Math.min(times * 200, 2_000)),
  })
  // Every queue adds listeners, and BullMQ adds 3 to the limit: 0 (no limit) would become 3.
  redis.setMaxListeners(Number.POSITIVE_INFINITY)
  let last: Error | null = null
  redis.on('error', (error) => {
    last = error
  })
  try {
    await withTimeout(redis.ping(), () => last)
    for (const ask of NEEDED) await withTimeout(ask(redis))
  } catch (error) {
    redis.disconnect()
    throw error
  }
  return {
    connection: redis as unknown as Bull.ConnectionOptions,
    backend: undefined,
    async now() {
      const [seconds, micros] = await redis.time()
      return Number(seconds) * 1000 + Number(micros) / 1000
    },
    isTimedByWorkers: false,
    isConnected: async () => redis.status === 'ready',
    end: async () => redis.disconnect(),
  }
}

async function connectPostgres(bull: typeof Bull, given: URL): Promise<Server> {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({
    connectionString: withTls(given.href, process.env),
    application_name: 'spillway',
    options: `-c search_path=${SCHEMA}`,
    max: CONNECTIONS,
    query_timeout: RESPONSE_MS,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
  })
  pool.setMaxListeners(Number.POSITIVE_INFINITY)
  pool.on('error', () => {})
  try {
    const client = await pool.connect()
    try {
      await bull.runMigrations(client as never, SCHEMA)
    } finally {
      client.release()
    }
  } catch (error) {
    await pool.end()
    if (lacksTls(error)) throw inClear('The server of the queue offers no TLS', 'Turn TLS on there')
    throw error
  }
  return {
    connection: pool as unknown as Bull.ConnectionOptions,
    backend: bull.createPostgresBackend as never,
    async now() {
      const { rows } = await pool.query('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now')
      return Number(rows[0].now)
    },
    isTimedByWorkers: true,
    isConnected: () =>
      pool.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    end: () => pool.end(),
  }
}

function queueOn(
  bull: typeof Bull,
  { connection, backend, isConnected, end, ...time }: Server,
  label: string,
  { warn }: QueueOptions,
): Queue {
  const open = new Map<string, Bull.Queue>()
  const queue = (name: string): Bull.Queue =>
    getOrInsert(open, name, () => {
      const settings = { connection, prefix: PREFIX, streams: { events: { maxLen: 1000 } } }
      return new bull.Queue(name, settings, backend).on('error', warnOnce)
    })
  let isWarned = false
  /** The error may be of any kind, and lost connections often have no code. So the server is queried. */
  async function warnOnce(): Promise<void> {
    if (isWarned) return
    isWarned = true
    const isWarning = !(await isConnected())
    if (isWarning) warn(`the queue ${label} does not respond; jobs continue until their leases expire`)
    setTimeout(() => (isWarned = false), isWarning ? WARN_MS : PROBE_MS).unref()
  }
  return {
    label,
    organizations: queue(ORGANIZATIONS),
    pipelinesOf: (organization) => queue(`pipelines.${encodeURIComponent(organization)}`),
    worker(process, times, onFailure) {
      const worker = new bull.Worker(
        ORGANIZATIONS,
        (job, token) => process(job, token ?? ''),
        {
          ...times,
          connection,
          prefix: PREFIX,
          autorun: false,
          maxStalledCount: MAX_STALLS,
          runRetryDelay: 1_000,
        },
        backend,
      )
      worker.on('error', warnOnce)
      // BullMQ would ask again at once, for ever, and no signal would be heard meanwhile.
      worker.on('error', (error) => {
        if (!isFinalAnswer(error)) return
        onFailure(asExportError(error, label))
        void worker.close(true)
      })
      return worker
    },
    ...time,
    async close() {
      await Promise.all([...open.values()].map((each) => each.close().catch(() => {})))
      await end()
    },
  }
}

/** Waits for a response, for `RESPONSE_MS` at most. @throws ExportError `target`, `credentials` */
export async function withTimeout<T>(
  response: Promise<T>,
  reason: () => Error | null = () => null,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(reason() ?? Object.assign(new Error('no response'), { code: 'ETIMEDOUT' })),
      RESPONSE_MS,
    )
  })
  try {
    return await Promise.race([response, late])
  } catch (error) {
    throw asExportError(error, '')
  } finally {
    clearTimeout(timer)
  }
}

function inClear(what: string, next: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `${what}, and nothing is sent to another machine in clear`,
    where: `variable ${QUEUE_VARIABLE}`,
    next: `${next}, or add ?sslmode=disable to the address if the network between is trusted.`,
  })
}

/** The server's message may quote values, so only its code is shown. */
function asExportError(error: unknown, label: string): unknown {
  if (error instanceof ExportError || !(error instanceof Error)) return error
  const code = queueCodeOf(error)
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') {
    return new ExportError({
      kind: 'config',
      what: 'The queue needs the packages bullmq and ioredis, which are not installed',
      where: '',
      next: 'Install spillway with its optional dependencies, or run `npm install bullmq ioredis` beside it.',
      cause: error,
    })
  }
  const isRefused = /^(?:28P01|28000|NOAUTH|WRONGPASS)$/.test(code)
  const [, command] = /the '([a-z|]+)' command/.exec(error.message) ?? []
  const isAnswered = isFinalAnswer(error)
  return new ExportError({
    kind: isRefused ? 'credentials' : 'target',
    what: isRefused
      ? `The queue refuses the password (${code})`
      : code === 'NOPERM'
        ? `The user of the queue may not do what it is needed for: ${command?.toUpperCase() ?? 'a command, or its keys'} (NOPERM)`
        : `The queue ${isAnswered ? 'cannot be used' : 'does not respond'} (${code})`,
    where: label,
    next:
      code === 'NOPERM'
        ? `Grant it: ACL SETUSER … +@all -@dangerous +info +client ~${PREFIX}:*, then run again.`
        : `Check ${QUEUE_VARIABLE}, the password and the server, then run again.`,
    cause: error,
  })
}

/** In Redis, the code is the first word of the message. */
function queueCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return codeOf(error) || (/^[A-Z]{5,}/.exec(error.message)?.[0] ?? error.name)
}
