/**
 * Serves pages over HTTP, in a separate process. It renders them before it listens, so rendering is not measured:
 * `node bench/server.mjs <shape> <pages per partition> [gzip]` prints its port when it is ready.
 */
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { renderItems, SHAPES } from './pages.mjs'

const [, , shapeName = 'typical', pagesPerPartition = '10', coding = 'identity'] = process.argv
const shape = SHAPES[shapeName]
const pages = Number(pagesPerPartition)
// Compresses the parts of a page separately, so that the large part is compressed only once.
const coded = (part) => (coding === 'gzip' ? gzipSync(part, { level: 1 }) : part)
// Eight different pages of 10,000 rows defeat any cache and fit into memory; of small pages all are different, of large
// ones where the shape says so. The first
// identity of each page is replaced by a unique one.
const different = shape.different ? pages : Math.max(8, Math.ceil(1e5 / (shape.items ?? 10_000)))
const IDENTITY = /(?<="identity_name":\s*")[^"]*/
const rendered = Array.from({ length: Math.min(pages, different) }, (_, number) => {
  const items = renderItems(number, shape)
  const { index, 0: found } = IDENTITY.exec(items)
  return { head: items.slice(0, index), tail: coded(Buffer.from(`${items.slice(index + found.length)},`)) }
})

/** When each search arrived, in milliseconds. A GET reads it. */
const log = []

const server = createServer(async (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify(log))
  log.push(performance.now())
  let text = ''
  for await (const chunk of request) text += chunk
  const { query, from } = JSON.parse(text)
  const page = Number(from ?? 0)
  const next = page + 1 < pages ? `"${page + 1}"` : 'null'
  const { head, tail } = rendered[page % rendered.length]
  const parts = [
    coded(Buffer.from(`{"items":${head}page-${page}@${query.fqdn}`)),
    tail,
    coded(Buffer.from(`"next":${next}}`)),
  ]
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  response.writeHead(200, {
    'content-type': 'application/json',
    ...(coding === 'gzip' ? { 'content-encoding': coding } : {}),
    'content-length': length,
  })
  for (const part of parts) response.write(part)
  response.end()
})
// The scripts take seconds between two requests, and do not retry when the connection is closed.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
