import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { connect, createServer as createSocketServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { collect, domainChain, failure, listen, open, sendPage, serve } from './support.ts'

// Made with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj /CN=localhost
const certificate = readFileSync(new URL('./self-signed.pem', import.meta.url))

afterEach(() => {
  vi.unstubAllEnvs()
})

it.each([301, 302, 303, 307, 308])('a redirect is an error, never followed: %i', async (status) => {
  const other = await serve((_request, response) => sendPage(response, null))
  const server = await serve((_request, response) =>
    response.writeHead(status, { location: `${other.url}/v4/credentials/global/_search` }).end(),
  )
  const error = await failure(collect(open(server.url), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toContain(`responded with ${status}`)
  expect(error.message).toContain('Redirects are not followed')
  expect(other.received).toHaveLength(0)
  expect(server.received).toHaveLength(1)
})

it('an untrusted certificate is rejected, whatever the environment says', async () => {
  let requests = 0
  const server = createServer({ key: certificate, cert: certificate }, (_request, response) => {
    requests++
    sendPage(response, null)
  })
  const port = await listen(server)
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const error = await failure(collect(open(`https://127.0.0.1:${port}`), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toContain('certificate is not accepted')
  expect(requests).toBe(0)
})

describe('a proxy', () => {
  /** Tunnels every CONNECT to `target`, whatever host it names. */
  async function serveProxy(target: string): Promise<{ url: string; hosts: string[] }> {
    const hosts: string[] = []
    const server = createSocketServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', (head) => {
        hosts.push(/^CONNECT (\S+)/.exec(head.toString())?.[1] ?? head.toString())
        const { hostname, port } = new URL(target)
        const onward: Socket = connect(Number(port), hostname, () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          socket.pipe(onward).pipe(socket)
        })
        onward.on('error', () => socket.destroy())
      })
    })
    const port = await listen(server)
    return { url: `http://127.0.0.1:${port}`, hosts }
  }

  it('from the environment is used', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const proxy = await serveProxy(server.url)
    vi.stubEnv('HTTP_PROXY', proxy.url)
    vi.stubEnv('NO_PROXY', 'other.example')
    await collect(open('http://service.example'), domainChain())
    expect(proxy.hosts).toEqual(['service.example:80'])
    expect(server.received[0]?.headers.host).toBe('service.example')
  })

  it('is never used for this machine', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const proxy = await serveProxy(server.url)
    vi.stubEnv('HTTP_PROXY', proxy.url)
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    await collect(open(server.url), domainChain())
    expect(server.received).toHaveLength(1)
    expect(proxy.hosts).toEqual([])
  })
})
