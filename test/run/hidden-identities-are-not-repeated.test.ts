import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sendJson, serveSearches } from '../extract/support.ts'
import { worldAt } from './world.ts'

const EMAIL = 'ada.loam@scatterholt.com'

it.each([
  ['keep', true],
  ['hmac', false],
  ['drop', false],
])(
  'under identity: %s an error that contains the address of a query is logged whole: %s',
  async (identity, isShown) => {
    const server = await serveSearches(({ body }, response) =>
      sendJson(response, { error: { code: 'BAD', message: `no: ${body}` } }, { status: 422 }),
    )
    const queries = `queries: [{ type: email, email: ${EMAIL}, as: case-17 }]`
    const { folder, run } = worldAt(server.url, queries, { env: { SPILLWAY_MASK_KEY: 'k'.repeat(40) } })
    const logged: unknown[] = []
    const onLog = (...line: unknown[]) => void logged.push(line)
    const { failures } = await run(`identity: ${identity}`, queries, { onLog })
    expect(server.received[0]?.body).toContain(EMAIL)
    expect(failures).toMatchObject([{ partition: 'email.case-17/all' }])
    const checkpoint = await readFile(join(folder, 'out/_state/checkpoint.jsonl'), 'utf8')
    const failed = checkpoint.split('\n').filter((line) => line.includes('"state":"failed"'))
    expect(JSON.stringify(logged).includes(EMAIL)).toBe(isShown)
    for (const text of [JSON.stringify(failures), failed.join()]) {
      expect(text).toContain('responded with 422: BAD')
      expect(text).not.toContain(EMAIL)
    }
  },
)
