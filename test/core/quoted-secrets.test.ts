import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { CODES, HARD_SECRETS, QUOTATIONS, unpleasantSecret } from '../support/quotations.ts'
import { cases } from '../support/thorough.ts'

/** A process that knows one secret alone: short ones are parts of the quotations of others. */
async function knowing(secret: string) {
  vi.resetModules()
  const { learnSecret, repeatsSecret } = await import('../../src/core/secrets/known-secrets.ts')
  learnSecret(secret)
  return repeatsSecret
}

/** Variables and files of secrets are UTF-8, so no secret that a process is given has a lone surrogate. */
const READABLE = HARD_SECRETS.filter((secret) => secret.isWellFormed())

it.each(READABLE)('a known secret is recognised however a service quotes it: %j', async (secret) => {
  const repeatsSecret = await knowing(secret)
  for (const [name, quote] of Object.entries({ ...QUOTATIONS, ...CODES })) {
    expect(
      repeatsSecret(`no match for {"secret":"${quote(secret)}"}, 2024`),
      `${name}: ${quote(secret)}`,
    ).toBe(true)
    expect(repeatsSecret(quote(secret)), `${name}: ${quote(secret)}`).toBe(true)
  }
  expect(repeatsSecret('§§ ¶¶')).toBe(false)
})

it('so is any other secret', async () => {
  await fc.assert(
    fc.asyncProperty(unpleasantSecret, async (drawn) => {
      const secret = drawn.toWellFormed()
      const repeatsSecret = await knowing(secret)
      for (const [name, quote] of Object.entries({ ...QUOTATIONS, ...CODES }))
        expect(repeatsSecret(`1 ${quote(secret)} 2`), `${name}: ${quote(secret)}`).toBe(true)
    }),
    { numRuns: cases(2000, 150) },
  )
})
