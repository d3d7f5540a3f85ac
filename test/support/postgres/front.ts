import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CERTIFICATE_PATH } from '../../e2e/support/proxy.ts'
import { portOf } from '../listening.ts'

/**
 * A TLS proxy before a server without TLS, with a certificate for 127.0.0.1 and service.example.
 * @param response to the request for TLS: `S`, or `N` as a server without it
 * @returns its address, and what it received before TLS began
 */
export async function front(url: string, response: 'S' | 'N'): Promise<{ url: string; heard: Buffer[] }> {
  const heard: Buffer[] = []
  const port = Number(new URL(url).port)
  const pem = readFileSync(CERTIFICATE_PATH)
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (request: Buffer) => {
      heard.push(request)
      socket.write(response)
      if (response === 'N') socket.on('data', (more: Buffer) => heard.push(more))
      else through(new TLSSocket(socket, { isServer: true, key: pem, cert: pem }))
    })
  })
  const through = (from: Socket): void => {
    const to = connect(port, '127.0.0.1')
    for (const end of [from, to]) end.on('error', () => void [from, to].forEach((one) => void one.destroy()))
    from.pipe(to).pipe(from)
  }
  return { url: url.replace(/:\d+\//, `:${await portOf(server)}/`), heard }
}

/** An address of this machine that is not recognized as local, in the role of another machine. */
export const elsewhere = (url: string): string => url.replace('127.0.0.1', '0.0.0.0')
