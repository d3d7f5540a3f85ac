/**
 * `npm run bench:decode`: what decoding costs (answer bytes to masked columns), page shape by page shape, on the
 * fast path with its fallback as the product uses it and on the plain path (JSON.parse and zod for every item).
 * Both take turns in one process; CPU seconds per million rows, least of the rounds.
 */
import { parseArgs } from 'node:util'
import { credentialPaths } from '../build/parts/decoder.js'
import { createDecoder } from '../build/parts/transform.js'
import { renderItems, SHAPES } from './pages.mjs'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '4' }, only: { type: 'string', default: '' } },
})

const COLUMNS = (await import('../build/parts/core.js')).allColumns('credentials', [])
const plan = {
  resource: 'credentials',
  columns: COLUMNS,
  extras: [],
  order: 'asc',
  secret: 'redact',
  identity: 'keep',
  maskKey: null,
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
}

console.log('| pages | CPU s per 1M rows | plain path | ratio |')
console.log('|---|---|---|---|')
for (const [name, shape] of Object.entries(SHAPES)) {
  if (!name.includes(options.only)) continue
  const bodies = Array.from({ length: 8 }, (_, page) =>
    Buffer.from(`{"items":${renderItems(page, shape)},"next":null}`),
  )
  const repeats = Math.max(1, Math.round(1000 / (shape.items ?? 10_000)))
  const decode = createDecoder(plan)
  const { plain } = credentialPaths(plan)
  const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round <= Number(options.rounds); round++) {
    for (const [contender, path] of [decode, plain].entries()) {
      const seconds = cpuSeconds(() => decodeAll(path, bodies, repeats))
      // The first round warms up.
      if (round > 0) least[contender] = Math.min(least[contender], seconds)
    }
  }
  const [fast, slow] = least.map(
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
