import fc from 'fast-check'
import { expect, test } from 'vitest'
import { seedOf } from '../support/thorough.ts'
import { edited, edits } from './fuzz-edits.ts'
import { attack } from './hostile-run.ts'
import { credential, type Exchange, type Item } from './hostile-service.ts'

const SEED = seedOf(20260302)
const SECRET = 'the-secret-of-this-response'

const VALID = JSON.stringify({
  items: [credential(1, { hash: SECRET }), credential(2, { hash: null }), credential(3, { source: null })],
  next: 'cursor',
})

const WORDS = [
  ...'{ } [ ] , : " \\ null true 0 -1 1e400 0.5 9007199254740993'.split(' '),
  ...'"items":[], "next":5, "id":"x", "hash":{}, \\ud800 \\u0000 "__proto__":{}, \ufeff'.split(' '),
]

const item: fc.Arbitrary<Item> = fc
  .tuple(
    fc.constantFrom(...Object.keys(credential(1)), 'source.name', 'source.id', 'unknown'),
    fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(undefined, null, '', 0, 1.5, 2 ** 60, [SECRET], { a: SECRET }),
    ),
    fc.integer({ min: 1, max: 2 ** 53 - 1 }),
  )
  .map(([field, value, id]) => {
    const found = credential(id % 1e6, { id, hash: SECRET })
    const [name = '', inner] = field.split('.')
    return inner === undefined
      ? { ...found, [name]: value }
      : { ...found, [name]: { ...(found[name] as Item), [inner]: value } }
  })

test.concurrent.each([1, 2, 3, 4, 5, 6])(
  'a run against a service with random responses ends as documented (%i)',
  async (n) => {
    const responses = fc.sample(
      fc.tuple(
        fc.constantFrom(200, 200, 200, 200, 200, 204, 304, 400, 403, 404, 409, 413, 422, 429, 500, 599, 999),
        fc.oneof(
          edits(WORDS).map((list) => edited(Buffer.from(VALID), list)),
          fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
          fc.array(item, { maxLength: 5 }).map((items) => Buffer.from(JSON.stringify({ items, next: 'n' }))),
        ),
      ),
      { seed: SEED + n, numRuns: 40 },
    )
    const { code, stdout, stderr, requests } = await attack(
      ({ number, response }: Exchange) => {
        const [status, body] = responses[(number - 1) % responses.length]!
        response.writeHead(status, { 'retry-after': '1' }).end(body)
      },
      {
        service: { retries: 1 },
        extract: { domains: ['a.example', 'b.example', 'c.example'], max_requests: 30 },
      },
    )
    if (code === 2) expect(stderr).toContain('404 to the first search')
    else expect([1, 3, 4], stderr).toContain(code)
    expect(requests).toBeLessThanOrEqual(30)
    expect(stdout + stderr).not.toMatch(/\n\s+at |unexpected error/)
    expect(stdout + stderr).not.toContain(SECRET)
    expect(JSON.parse(stdout)).toMatchObject({ pipeline: 'trial' })
  },
)
