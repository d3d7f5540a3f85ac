import { expect, test } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { get } from './client.ts'

const REPORTS = '/firework/v4/threat_flow/reports'

type Listed = { items: { id: number }[]; next: string | null }

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

test('unknown ids are 404, impossible ones and unknown parameters 422, foreign cursors 400', async () => {
  const sandbox = await startSandbox()
  const missing = await get(sandbox, `${REPORTS}/26`)
  expect(missing.status).toBe(404)
  expect(await missing.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
  const { next } = (await (await get(sandbox, `${REPORTS}/?size=5`)).json()) as Listed
  for (const [path, status] of [
    ['seven', 422],
    [`?size=5&from=${next}`, 200],
    [`?size=6&from=${next}`, 400],
    ['?page=2', 422],
    ['?size=0', 422],
  ])
    expect((await get(sandbox, `${REPORTS}/${path}`)).status, `${path}`).toBe(status)
})
