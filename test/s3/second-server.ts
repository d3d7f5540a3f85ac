import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { thoroughPackage } from '../thorough/packages.mjs'
import type { S3Server } from './servers.ts'

/**
 * A server from npm that others maintain: fauxqs. It honours no condition of a write, does not list multipart uploads,
 * and verifies no signature, like every server in npm that runs on Node.js 20. So a gate in front of it honours
 * `If-Match` and `If-None-Match`, one write at a time, and responds `NotImplemented` to lists of uploads; bytes,
 * metadata, copies, listings and parts are fauxqs's own.
 * @param keepsConditions whether the gate rejects writes whose conditions do not hold
 */
export async function startSecondServer(keepsConditions: boolean): Promise<S3Server> {
  const { startFauxqs } = await thoroughPackage('fauxqs')
  const fauxqs = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })
  let last: Promise<unknown> = Promise.resolve()
  const server = createServer((message, response) => {
    const work = async (): Promise<void> => pass(message, response, fauxqs.port, keepsConditions)
    const done = message.method === 'GET' || message.method === 'HEAD' ? work() : last.then(work)
    last = Promise.all([last, done.catch(() => response.destroy())])
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await fauxqs.stop()
    },
  }
}

async function pass(
  message: IncomingMessage,
  response: ServerResponse,
  port: number,
  keepsConditions: boolean,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://gate')
  if (message.method === 'GET' && searchParams.has('uploads')) return refuse(response, 501, 'NotImplemented')
  const isPart = searchParams.has('partNumber')
  if (keepsConditions && !isPart) {
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = message.headers
    if (ifMatch !== undefined || ifNoneMatch !== undefined) {
      const found = await forward(port, 'HEAD', pathname, { host: message.headers.host })
      const etag = found.status === 200 ? String(found.headers.etag) : null
      if (ifMatch !== undefined && etag === null) return refuse(response, 404, 'NoSuchKey')
      if ((ifMatch !== undefined && ifMatch !== etag) || (ifNoneMatch === '*' && etag !== null))
        return refuse(response, 412, 'PreconditionFailed')
    }
  }
  const forwarded = await forward(
    port,
    message.method ?? 'GET',
    message.url ?? '/',
    message.headers,
    Buffer.concat(chunks),
  )
  response.writeHead(forwarded.status, forwarded.headers)
  response.end(forwarded.body)
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`)
}

type Forwarded = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

async function forward(
  port: number,
  method: string,
  path: string,
  headers: IncomingMessage['headers'],
  body: Buffer = Buffer.alloc(0),
): Promise<Forwarded> {
  const request = send({ host: '127.0.0.1', port, method, path, headers })
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return { status: response.statusCode ?? 500, headers: response.headers, body: Buffer.concat(chunks) }
}
