import { expect, test } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { get } from './client.ts'

const REPORTS = '/firework/v4/threat_flow/reports'

type Listed = { items: { id: number }[]; next: string | null }

test('unknown ids are 404, impossible ones 422', async () => {
  const sandbox = await startSandbox()
  const missing = await get(sandbox, `${REPORTS}/26`)
  expect(missing.status).toBe(404)
  expect(await missing.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
  expect((await get(sandbox, `${REPORTS}/seven`)).status).toBe(422)
})

test.each(['asc', 'desc'])('the list pages through all 25, %s', async (order) => {
  const sandbox = await startSandbox()
  const sizes: number[] = []
  const ids: number[] = []
  let from = ''
  do {
    const response = await get(sandbox, `${REPORTS}/?order=${order}${from}`)
    const body = (await response.json()) as Listed
    sizes.push(body.items.length)
    ids.push(...body.items.map((item) => item.id))
    from = body.next ? `&from=${body.next}` : ''
  } while (from)
  expect(sizes).toEqual([10, 10, 5])
  const wanted = Array.from({ length: 25 }, (_, i) => i + 1)
  expect(ids).toEqual(order === 'asc' ? wanted : wanted.reverse())
})

test('the list refuses unknown parameters and foreign cursors', async () => {
  const sandbox = await startSandbox()
  const { next } = (await (await get(sandbox, `${REPORTS}/?size=5`)).json()) as Listed
  expect((await get(sandbox, `${REPORTS}/?size=5&from=${next}`)).status).toBe(200)
  expect((await get(sandbox, `${REPORTS}/?size=6&from=${next}`)).status).toBe(400)
  expect((await get(sandbox, `${REPORTS}/?page=2`)).status).toBe(422)
  expect((await get(sandbox, `${REPORTS}/?size=0`)).status).toBe(422)
})
