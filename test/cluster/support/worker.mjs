// A worker of the built package with short leases and time slices, so that tests wait less.
import { openQueue, work } from '../../../build/parts/cluster.js'
import { systemClock } from '../../../build/parts/core.js'
import { readSubmitted } from '../../../build/parts/pipeline.js'
import { runOptions } from '../../../build/parts/run-options.js'

const { concurrency, leaseMs, sliceMs, aheadMs = 0 } = JSON.parse(process.argv[2])
if (aheadMs !== 0) {
  const now = Date.now.bind(Date)
  Date.now = () => now() + aheadMs
}
const stop = new AbortController()
const abort = new AbortController()
process.once('SIGTERM', () => {
  stop.abort()
  setTimeout(() => abort.abort(), 5000).unref()
})
const log = (level, message, fields) =>
  process.stderr.write(`${level} ${message} ${JSON.stringify(fields ?? {})}\n`)
const queue = await openQueue(process.env.SPILLWAY_QUEUE_URL, {
  clock: systemClock,
  password: process.env.SPILLWAY_QUEUE_PASSWORD ?? null,
  warn: (message) => log('warn', message),
  wait: stop.signal,
})
await work({
  queue,
  clock: systemClock,
  concurrency,
  leaseMs,
  sliceMs,
  stop: stop.signal,
  log,
  readPipeline: (file) => readSubmitted(file, process.cwd(), { env: process.env, cwd: process.cwd() }),
  runOptions: (pipeline, given) => runOptions(pipeline, { abort: abort.signal, ...given }),
})
await queue.close()
