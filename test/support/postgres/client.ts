import pg from 'pg'
import { PASSWORD } from './server.mjs'

export { PASSWORD }

export async function pgClient(url: string): Promise<pg.Client> {
  const { hostname: host, port, username: user, pathname } = new URL(url)
  const database = pathname.slice(1)
  const client = new pg.Client({ host, port: Number(port), user, password: PASSWORD, database })
  await client.connect()
  return client
}

export async function pgRows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = await pgClient(url)
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}
