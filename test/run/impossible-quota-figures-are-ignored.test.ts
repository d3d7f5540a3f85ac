import { expect, test } from 'vitest'
import { sendPage, serve } from '../extract/support.ts'
import { worldAt } from './world.ts'

test('a quota of -1, sent as an unsigned 64-bit number, leaves the data set resumable', async () => {
  const server = await serve((_request, response, index) => {
    response.setHeader('x-flare-global-searches-remaining', '18446744073709551615')
    sendPage(response, index === 0 ? 'c1' : null, [])
  })
  const { run } = await worldAt(server.url, 'domains: [acme.com]')
  await expect(run()).resolves.toMatchObject({ status: 'complete', searchesRemaining: null, error: null })
  await expect(run()).resolves.toMatchObject({ status: 'complete', requests: 0, error: null })
})
