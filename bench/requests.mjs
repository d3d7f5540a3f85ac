/**
 * `npm run bench:requests`: how many requests and searches twenty pipelines take, each against a made-up service, compared
 * with the least possible: full pages of what the service serves, and no request in vain. In sum at most 5 % more.
 *
 *   --only TEXT    cases whose name contains the text
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readPipeline, runOptions, runPipeline } from '../dist/index.js'

const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const MOST_ABOVE = 0.05
const DAY = 86_400_000
const BEGIN = Date.parse('2024-01-01T00:00:00Z')
const domains = (count) => `domains: [${Array.from({ length: count }, (_, i) => `d${i}.example`)}]`
const months = (until, more = '') => `windows: { from: 2024-01-01, until: ${until}, every: month${more} }`
const YEAR = months('2025-01-01')
const every = (count) => (index) => index % count === count - 1
const between = (from, until) => (index) => index >= from && index < until
const times = (count, run) => Array.from({ length: count }, (_, i) => run(i))

/**
 * - `rows`: of each query, over `days` days
 * - `service`: `most` rows a page; `bound`: cursors keep their size; `perPage`: a page costs one search; `fails`: which
 *   requests get `status` and `body`; `refuses`: queries that get 403; `byId`: rows come by id, some a little late
 * - `runs`: the section `extract` of each, the day on which it runs, the key of cursors
 */
const CASES = [
  {
    name: '40 domains × 12 months, few rows',
    queries: 40,
    rows: 48,
    runs: [{ extract: `${domains(40)}, ${YEAR}` }],
  },
  { name: '20 full pages', rows: 200_000, runs: [{ extract: `${domains(1)}, ${YEAR}` }] },
  {
    name: '120 pages that take their time',
    rows: 120_000,
    service: { ms: 5 },
    runs: [{ extract: `${domains(1)}, ${YEAR}, page_size: 1000` }],
  },
  {
    name: '4 domains of 90 pages of 100 rows',
    queries: 4,
    rows: 9000,
    service: { ms: 2 },
    runs: [{ extract: `${domains(4)}, ${YEAR}, page_size: 100` }],
  },
  {
    name: '30 nights of 8 domains',
    queries: 8,
    rows: 3660,
    runs: times(30, (i) => ({
      extract: `${domains(8)}, windows: { from: 2024-01-01, until: ${dayOf(i + 1)}, every: 1d }`,
    })),
  },
  {
    name: '30 nights of 10 feeds, oldest first',
    feeds: 10,
    rows: 3660,
    runs: times(30, (i) => ({
      day: 60 + i,
      extract: 'resource: feed, identifiers: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]',
    })),
  },
  {
    name: '30 nights of 10 feeds, newest first',
    feeds: 10,
    rows: 3660,
    service: { newest: true },
    runs: times(30, (i) => ({
      day: 60 + i,
      extract: 'resource: feed, identifiers: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]',
    })),
  },
  {
    name: 'a service that serves 320 rows',
    rows: 60_000,
    service: { most: 320 },
    runs: [{ extract: `${domains(1)}, ${YEAR}` }],
  },
  {
    name: 'the same with page_size: 300',
    queries: 2,
    rows: 30_000,
    service: { most: 320 },
    runs: [{ extract: `${domains(2)}, ${YEAR}, page_size: 300` }],
  },
  {
    name: 'ten runs of ten requests',
    rows: 100_000,
    runs: times(10, () => ({ extract: `${domains(1)}, ${YEAR}, page_size: 1000, max_requests: 10` })),
  },
  {
    name: 'another page size in each run',
    rows: 30_000,
    runs: [100, 200, 500, 1000].map((size, i) => ({
      extract: `${domains(1)}, ${YEAR}, page_size: ${size}, max_requests: ${i < 3 ? 20 : 'none'}`,
    })),
  },
  {
    name: 'the same with sizes bound to cursors',
    rows: 30_000,
    service: { bound: true },
    runs: [500, 1000, 200, 1000].map((size, i) => ({
      extract: `${domains(1)}, ${YEAR}, page_size: ${size}, max_requests: ${i < 3 ? 10 : 'none'}`,
    })),
  },
  {
    name: 'one 504 in 50 requests',
    rows: 150_000,
    service: { fails: every(50), status: 504 },
    runs: [{ extract: `${domains(1)}, ${YEAR}, page_size: 1000` }],
  },
  {
    name: 'two 504s, then all is well',
    rows: 200_000,
    service: { fails: between(5, 7), status: 504 },
    runs: [{ extract: `${domains(1)}, ${YEAR}, page_size: 2000` }],
  },
  {
    name: 'an outage of HTML',
    rows: 100_000,
    service: { fails: between(20, 25), status: 403, body: '<html>' },
    runs: [{ extract: `${domains(1)}, ${YEAR}, page_size: 1000` }],
  },
  {
    name: 'a cursor that is refused',
    rows: 100_000,
    runs: [
      { extract: `${domains(1)}, ${YEAR}, page_size: 1000, max_requests: 40` },
      { key: 2, extract: `${domains(1)}, ${YEAR}, page_size: 1000` },
    ],
  },
  {
    name: 'newest first',
    rows: 100_000,
    runs: [{ extract: `${domains(1)}, ${YEAR}, page_size: 1000, order: desc` }],
  },
  {
    name: 'rows by id, some of them late, a cursor that is refused',
    rows: 50_000,
    service: { byId: true },
    runs: [
      { extract: `${domains(1)}, ${YEAR}, page_size: 500, max_requests: 40` },
      { key: 2, extract: `${domains(1)}, ${YEAR}, page_size: 500` },
    ],
  },
  {
    name: '403 for one of 60 domains',
    queries: 60,
    rows: 900,
    service: { refuses: 7 },
    runs: [{ extract: `${domains(60)}, ${YEAR}` }],
  },
  {
    name: 'a share of 60 searches a month, at one a page',
    queries: 3,
    rows: 50_000,
    service: { perPage: true },
    runs: times(4, (i) => ({
      day: 400 + 31 * i,
      extract: `${domains(3)}, ${YEAR}, page_size: 1000, monthly_searches: 60`,
    })),
  },
]

function dayOf(number) {
  return new Date(BEGIN + number * DAY).toISOString().slice(0, 10)
}

/** The time of a row, in ms. By id one in 40 is 20 minutes late. */
function timeOf({ rows, service: { byId = false } = {} }, index) {
  const late = byId && index % 40 === 39 ? 20 * 60_000 : 0
  return Math.max(BEGIN, BEGIN + Math.floor((index * 366 * DAY) / rows) - late)
}

function itemOf(given, query, index) {
  const time = new Date(timeOf(given, index)).toISOString()
  return `{"id":${query * 10_000_000 + index + 1},"domain":"d.example","identity_name":"a@d.example","hash":"x","hash_type":"unknown","imported_at":"${time}","source_id":"s","source":{"id":"s","name":"S","description_en":null,"description_fr":null,"is_alert_enabled":true,"breached_at":null,"leaked_at":null}}`
}

function serviceOf(given) {
  const {
    most = 10_000,
    bound = false,
    perPage = false,
    fails = () => false,
    status,
    body = '',
    refuses,
    newest = false,
    ms = 0,
  } = given.service ?? {}
  const state = { requests: 0, searches: 0, key: 1, nowMs: BEGIN }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const index = state.requests++
    response.setHeader('date', new Date(state.nowMs).toUTCString())
    if (fails(index)) return response.writeHead(status).end(body)
    const isFeed = request.method === 'GET'
    const url = new URL(request.url, 'http://feed')
    const { query, filters, order, size, from } = isFeed
      ? {
          order: newest ? 'desc' : 'asc',
          size: Number(url.searchParams.get('size')),
          from: url.searchParams.get('from') ?? undefined,
        }
      : JSON.parse(text)
    const number = Number(/\d+/.exec(isFeed ? url.pathname.replace('v3', '') : query.fqdn))
    if (number === refuses) return response.writeHead(403).end('{}')
    const filter = JSON.stringify(filters ?? null)
    const cursor = from === undefined ? null : JSON.parse(from)
    const isForeign =
      cursor !== null &&
      (cursor.filter !== filter || cursor.key !== state.key || (bound && cursor.size !== size))
    if (isForeign) return response.writeHead(400).end('{}')
    if (size > most) return response.writeHead(504).end('upstream request timeout')
    const { gte, lte } = filters?.imported_at ?? {}
    const [least, greatest] = [gte ? Date.parse(gte) : 0, lte ? Date.parse(lte) : state.nowMs]
    const found = []
    for (let row = 0; row < given.rows; row++) {
      const at = timeOf(given, row)
      if (at >= least && at <= greatest) found.push(row)
    }
    if (order === 'desc') found.reverse()
    // Rows of a feed that come at its front move those behind them.
    const start = isFeed && newest && cursor !== null ? found.indexOf(cursor.after) + 1 : (cursor?.start ?? 0)
    const page = found.slice(start, start + size)
    if (!isFeed) {
      state.searches += perPage ? 1 : Math.max(1, Math.ceil(page.length / 100))
      response.setHeader('x-flare-global-searches-remaining', 10_000_000 - state.searches)
    }
    const next = { start: start + size, after: page.at(-1), filter, size, key: state.key }
    // A feed's last cursor is where it goes on.
    const isOver = start + size >= found.length
    setTimeout(() => {
      const items = page.map((row) => itemOf(given, number, row)).join(',')
      response.end(`{"items":[${items}],"next":${isOver ? 'null' : JSON.stringify(JSON.stringify(next))}}`)
    }, ms)
  })
  return { server, state }
}

/** Full pages over what each run has new, in as few chains as possible. */
function leastOf(given) {
  const {
    queries = 1,
    feeds = 0,
    rows,
    runs,
    service: { most = 10_000, perPage = false, refuses } = {},
  } = given
  const sizes = runs.map(({ extract }) =>
    Number(/page_size: (\d+)/.exec(extract)?.[1] ?? (feeds > 0 ? 100 : 10_000)),
  )
  if (feeds > 0) {
    let [requests, before] = [0, 0]
    for (const [i, { day }] of runs.entries()) {
      const now = Math.floor((rows * day) / 366)
      requests += feeds * Math.max(1, Math.ceil((now - before) / sizes[i]))
      before = now
    }
    return { requests, searches: 0 }
  }
  const found = queries - (refuses === undefined ? 0 : 1)
  const isNightly = runs[0].extract.includes('every: 1d')
  const each = isNightly ? Math.ceil(rows / 366) : rows
  let requests = 0
  let left = each
  for (const [i, { extract }] of runs.entries()) {
    const budget = Number(/max_requests: (\d+)/.exec(extract)?.[1] ?? Number.POSITIVE_INFINITY)
    const pages = Math.min(budget, Math.ceil(left / Math.min(most, sizes[i])))
    requests += pages
    left = isNightly ? each : left - pages * Math.min(most, sizes[i])
    if (left <= 0) break
  }
  const searches = perPage ? requests : Math.ceil(each / 100) * (isNightly ? runs.length : 1)
  return { requests: queries * requests, searches: found * searches }
}

async function carriedOut(given) {
  const { server, state } = serviceOf(given)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  let status = ''
  try {
    for (const { extract, day = 400, key = 1 } of given.runs) {
      Object.assign(state, { key, nowMs: BEGIN + day * DAY })
      const limit = extract.includes('max_requests') ? '' : ', max_requests: none'
      const text = `name: bench
service: { base_url: 'http://127.0.0.1:${server.address().port}', requests_per_second: 10000, basic_requests_per_second: 10000 }
extract: { ${extract}${limit} }
load: { path: out, format: csv, partition_by: none }
`
      writeFileSync(join(folder, 'bench.yaml'), text)
      const pipeline = await readPipeline('bench.yaml', { env: {}, cwd: folder })
      const clock = {
        now: () => state.nowMs,
        monotonicMs: () => performance.now(),
        sleep: async (_ms, signal) => signal.throwIfAborted(),
      }
      const summary = await runPipeline(
        pipeline,
        await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 'token' }, clock }),
      )
      status = summary.status
    }
    return { requests: state.requests, searches: state.searches, status }
  } finally {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  }
}

console.log('| pipeline | requests | least | searches | least | last run |')
console.log('|---|---|---|---|---|---|')
const sum = { requests: 0, leastRequests: 0, searches: 0, leastSearches: 0 }
for (const given of CASES.filter(({ name }) => name.includes(options.only))) {
  const least = leastOf(given)
  const { requests, searches, status } = await carriedOut(given)
  sum.requests += requests
  sum.leastRequests += least.requests
  sum.searches += searches
  sum.leastSearches += least.searches
  console.log(
    `| ${given.name} | ${requests} | ${least.requests} | ${searches} | ${least.searches} | ${status} |`,
  )
}
const above = [sum.requests / sum.leastRequests - 1, sum.searches / Math.max(1, sum.leastSearches) - 1]
const percents = above.map((share) => `${(100 * share).toFixed(1)} %`)
console.log(
  `| sum | ${sum.requests} | ${sum.leastRequests} | ${sum.searches} | ${sum.leastSearches} | above: ${percents.join(', ')} |`,
)
if (Math.max(...above) > MOST_ABOVE) process.exitCode = 1
