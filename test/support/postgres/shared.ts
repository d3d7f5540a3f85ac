import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgres } from './server.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where one asks for a database: `newDatabase`. */
    postgres: string
  }
}

/** One PostgreSQL server for all test files of a project, begun when the first of them asks for a database. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let server: Promise<PostgresServer> | null = null
  const desk = createServer(async (_request, response) => {
    try {
      server ??= startPostgres()
      response.end(await (await server).database())
    } catch (error) {
      response.writeHead(500).end(`There is no PostgreSQL: ${error}`)
    }
  })
  desk.listen(0, '127.0.0.1')
  await once(desk, 'listening')
  provide('postgres', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`)
  return async () => {
    desk.close()
    desk.closeAllConnections()
    await (await server?.catch(() => null))?.stop()
  }
}
