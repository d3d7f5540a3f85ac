/**
 * Serves pages that are rendered before the clock starts, in a process of its own:
 * `node bench/server.mjs <shape> <pages per partition>` prints its port once it is ready.
 */
import { createServer } from 'node:http'
import { renderItems, SHAPES } from './pages.mjs'

const [, , shapeName = 'typical', pagesPerPartition = '10'] = process.argv
const shape = SHAPES[shapeName]
const pages = Number(pagesPerPartition)
// Eight different pages are enough to defeat any cache, and fit into memory. The first identity of each is one that
// no other page has.
const IDENTITY = /(?<="identity_name":\s*")[^"]*/
const rendered = Array.from({ length: Math.min(pages, 8) }, (_, number) => {
  const items = renderItems(number, shape)
  const { index, 0: found } = IDENTITY.exec(items)
  return { head: items.slice(0, index), tail: Buffer.from(`${items.slice(index + found.length)},`) }
})

const server = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += chunk
  const { query, from } = JSON.parse(text)
  const page = Number(from ?? 0)
  const next = page + 1 < pages ? `"${page + 1}"` : 'null'
  const { head, tail } = rendered[page % rendered.length]
  const parts = [
    Buffer.from(`{"items":${head}page-${page}@${query.fqdn}`),
    tail,
    Buffer.from(`"next":${next}}`),
  ]
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length })
  for (const part of parts) response.write(part)
  response.end()
})
// The scripts work for seconds between two requests, and do not try again.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
