import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A connection to a server that can be cut. */
export type Wire = {
  readonly port: number
  /** From now on nothing gets through, and neither side is notified. */
  cut(): void
  mend(): void
}

export async function startWire(target: number): Promise<Wire> {
  let isCut = false
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => {
        if (!isCut) to.write(bytes)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        if (!isCut) to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
    },
    mend() {
      isCut = false
      for (const socket of sockets) socket.destroy()
    },
  }
}
