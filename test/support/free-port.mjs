import { createServer } from 'node:net'

// No system gives these to a program that listens on any port, so none is taken while its server is down.
const FIRST = 20_000
const COUNT = 10_000
/** Of processes at work at the same time, each begins at another one. */
let offset = (process.pid * 100) % COUNT

export async function freePort() {
  for (;;) {
    const port = FIRST + (offset++ % COUNT)
    const isFree = await new Promise((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}
