import pg from 'pg'

export const PASSWORD = 'not-to-be-shown-4711'

/** A connection to a database of a test's server. */
export async function pgClient(url: string): Promise<pg.Client> {
  const { hostname: host, port, username: user, pathname } = new URL(url)
  const client = new pg.Client({
    host,
    port: Number(port),
    user,
    password: PASSWORD,
    database: pathname.slice(1),
  })
  await client.connect()
  return client
}

/** Asks a database of a test's server. */
export async function pgRows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  return withClient(url, async (client) => (await client.query(sql)).rows as Record<string, unknown>[])
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await pgClient(url)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
