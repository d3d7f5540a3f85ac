import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { assemble, WRITTEN } from '../../src/transform/scan/assembly/assemble.mjs'

// A build assembles it again, in two seconds.
test('the committed item walker is the one that its sources assemble to', async () => {
  expect(readFileSync(WRITTEN).equals(await assemble())).toBe(true)
})
