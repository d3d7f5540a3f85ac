import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgres } from './server.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL that responds with a new database: see `newDatabase`. */
    postgres: string
  }
}

/** One PostgreSQL server for all test files of a project, started when the first of them requests a database. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let server: Promise<PostgresServer> | null = null
  const endpoint = createServer(async (_request, response) => {
    try {
      server ??= startPostgres()
      response.end(await (await server).database())
    } catch (error) {
      response.writeHead(500).end(`There is no PostgreSQL: ${error}`)
    }
  })
  endpoint.listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
  provide('postgres', `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`)
  return async () => {
    endpoint.close()
    endpoint.closeAllConnections()
    await (await server?.catch(() => null))?.stop()
  }
}
