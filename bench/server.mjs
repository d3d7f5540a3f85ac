/**
 * Serves pages that are rendered before the clock starts, in a process of its own:
 * `node bench/server.mjs <shape> <pages per partition>` prints its port once it is ready.
 */
import { createServer } from 'node:http'
import { renderItems, SHAPES } from './pages.mjs'

const [, , shapeName = 'typical', pagesPerPartition = '10'] = process.argv
const shape = SHAPES[shapeName]
const pages = Number(pagesPerPartition)
// Eight different pages are enough to defeat any cache, and fit into memory.
const rendered = Array.from({ length: Math.min(pages, 8) }, (_, number) =>
  Buffer.from(`{"items":${renderItems(number, shape)},`),
)

const server = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += chunk
  const page = Number(JSON.parse(text).from ?? 0)
  const next = page + 1 < pages ? `"${page + 1}"` : 'null'
  const body = rendered[page % rendered.length]
  const tail = Buffer.from(`"next":${next}}`)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length + tail.length })
  response.write(body)
  response.end(tail)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
