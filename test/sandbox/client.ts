import type { CredentialJson, Sandbox } from '../support/sandbox.ts'

export const SEARCH = '/firework/v4/credentials/global/_search'
export const SECOND_SEARCH = '/astp/v2/credentials/_search'

export function post(
  sandbox: Sandbox,
  body: unknown,
  path = SEARCH,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(sandbox.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

export function get(sandbox: Sandbox, path: string): Promise<Response> {
  return fetch(sandbox.origin + path, { headers: { authorization: `Bearer ${sandbox.token}` } })
}

export type SearchPage = { items: CredentialJson[]; next: string | null }

export async function page(sandbox: Sandbox, body: unknown, path = SEARCH): Promise<SearchPage> {
  const response = await post(sandbox, body, path)
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`)
  return (await response.json()) as SearchPage
}

/** Follows `next` to the end. */
export async function pages(sandbox: Sandbox, body: object, path = SEARCH): Promise<SearchPage[]> {
  const all: SearchPage[] = []
  let from: string | null = null
  do {
    const current: SearchPage = await page(sandbox, { ...body, from }, path)
    all.push(current)
    from = current.next
  } while (from)
  return all
}

export async function searchAll(sandbox: Sandbox, body: object, path = SEARCH): Promise<CredentialJson[]> {
  return (await pages(sandbox, body, path)).flatMap(({ items }) => items)
}

/** Microseconds since 1970, computed without the sandbox's own reader. */
export function micros(time: string): bigint {
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? ''
  const seconds = Date.parse(time.replace(/\.\d+/, '')) / 1000
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
}
