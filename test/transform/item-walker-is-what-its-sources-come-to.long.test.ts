import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { assemble, WRITTEN } from '../../src/transform/scan/assembly/assemble.mjs'

// A build assembles it anew, in two seconds.
test('the item walker is what its sources come to', async () => {
  expect(readFileSync(WRITTEN, 'utf8')).toBe(await assemble())
})
