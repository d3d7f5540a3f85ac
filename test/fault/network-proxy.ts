import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atTheEnd } from '../support/at-the-end.ts'

/** The fault of one connection. */
export type Strike =
  /** Reset as soon as the client has connected. */
  | { readonly kind: 'refuse' }
  /** A reset after so many bytes of the response. */
  | { readonly kind: 'reset-after'; readonly bytes: number }
  /** A reset after the head of the response. */
  | { readonly kind: 'reset-after-headers' }
  /** One byte of the body is changed. */
  | { readonly kind: 'flip-body' }
  /** The response arrives in chunks of so many bytes. */
  | { readonly kind: 'chunks'; readonly bytes: number }

export type Proxy = {
  readonly port: number
  /** Connections so far. */
  readonly connections: number
}

/**
 * A proxy that injects faults of the network. Of HTTP it knows only where a head ends.
 * @param strikeFor by the number of the connection, from 1 on
 */
export async function startProxy(
  targetPort: number,
  strikeFor: (connection: number) => Strike | null,
): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((client) => {
    const strike = strikeFor(++connections)
    keep(sockets, client)
    if (strike?.kind === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const service = keep(sockets, connect(targetPort, '127.0.0.1'))
    client.pipe(service)
    let sent = 0
    let head = Buffer.alloc(0)
    let flipped = false
    service.on('data', (chunk: Buffer) => {
      switch (strike?.kind) {
        case 'reset-after':
          client.write(chunk.subarray(0, strike.bytes - sent), () => {
            if (sent >= strike.bytes) client.resetAndDestroy()
          })
          sent += chunk.length
          return
        case 'reset-after-headers': {
          head = Buffer.concat([head, chunk])
          const end = head.indexOf('\r\n\r\n')
          if (end >= 0) client.write(head.subarray(0, end + 4), () => client.resetAndDestroy())
          return
        }
        case 'flip-body': {
          const start = flipped ? -1 : chunk.indexOf('\r\n\r\n')
          if (start >= 0 && chunk.length > start + 40) {
            chunk[start + 30]! ^= 0xff
            flipped = true
          }
          client.write(chunk)
          return
        }
        case 'chunks':
          client.setNoDelay()
          for (let at = 0; at < chunk.length; at += strike.bytes)
            client.write(chunk.subarray(at, at + strike.bytes))
          return
        default:
          client.write(chunk)
      }
    })
    service.on('end', () => client.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atTheEnd(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections
    },
  }
}

function keep(sockets: Set<Socket>, socket: Socket): Socket {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  // Broken connections are expected here.
  socket.on('error', () => socket.destroy())
  return socket
}
