import type { AddressInfo, Server } from 'node:net'
import { atTheEnd } from './at-the-end.ts'

/** Lets a server listen on this machine until the tests of the file are done. @returns its port */
export async function portOf(server: Server): Promise<number> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atTheEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
