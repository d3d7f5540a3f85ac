/**
 * `npm run bench:decode`: CPU time of decoding (bytes of a response to masked columns) by page shape, compared with
 * JSON.parse and zod for every item. One process runs both alternately. Figures are CPU seconds per million rows, the minimum of the rounds.
 *
 *   --rounds N     rounds (4)
 *   --only TEXT    shapes whose name contains the text
 */
import { parseArgs } from 'node:util'
import { plainPages } from '../build/parts/plain-pages.js'
import { createDecoder } from '../build/parts/transform.js'
import { renderItems, SHAPES } from './pages.mjs'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '4' }, only: { type: 'string', default: '' } },
})

const COLUMNS = (await import('../build/parts/rows.js')).allColumns('credentials', [])
const plan = {
  resource: 'credentials',
  columns: COLUMNS,
  extras: [],
  order: 'asc',
  secret: 'redact',
  identity: 'keep',
  maskKey: null,
  suppress: null,
  secretFacts: null,
  onInvalid: 'quarantine',
}
const query = { type: 'domain', fqdn: 'scatterholt.com', name: 'domain.scatterholt.com' }
const context = {
  query,
  partition: 'domain.scatterholt.com/all',
  page: 0,
  requested: null,
  own: null,
  queryValue: 'scatterholt.com',
  since: null,
  recent: [],
  known: [],
}

console.log('| pages | CPU s per 1M rows | JSON.parse and zod | ratio |')
console.log('|---|---|---|---|')
for (const [name, shape] of Object.entries(SHAPES)) {
  if (!name.includes(options.only)) continue
  const bodies = Array.from({ length: 8 }, (_, page) =>
    Buffer.from(`{"items":${renderItems(page, shape)},"next":null}`),
  )
  const repeats = Math.max(1, Math.round(1000 / (shape.items ?? 10_000)))
  const decode = createDecoder(plan)
  const plain = plainPages(plan)
  const minimum = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round <= Number(options.rounds); round++) {
    for (const [contender, path] of [decode, plain].entries()) {
      const seconds = cpuSeconds(() => decodeAll(path, bodies, repeats))
      // The first round warms up.
      if (round > 0) minimum[contender] = Math.min(minimum[contender], seconds)
    }
  }
  const [fast, slow] = minimum.map(
    (seconds) => (seconds / (bodies.length * repeats * (shape.items ?? 10_000))) * 1e6,
  )
  console.log(`| ${name} | ${fast.toFixed(2)} | ${slow.toFixed(2)} | ${(fast / slow).toFixed(2)} |`)
}

function decodeAll(path, bodies, repeats) {
  for (let repeat = 0; repeat < repeats; repeat++) for (const body of bodies) path(body, context)
}

function cpuSeconds(work) {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}
