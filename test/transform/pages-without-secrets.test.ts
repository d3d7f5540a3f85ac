import { expect, test } from 'vitest'
import { learnSecret } from '../../src/core/index.ts'
import { CODES, FORMS, OTHER_SPELLINGS } from '../support/quotations.ts'
import { credential } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'

/** Names of unknown fields as they are shown: those of items with one each, and that of an item in quarantine. */
async function shownNames(names: readonly string[]) {
  const { read } = readersOf(decodeSettings())
  const items = names.map((name, id) => credential({ id, [name]: 1 }))
  const all = [...items, credential({ id: null, [names[0]!]: 1 })]
  const page = read(Buffer.from(JSON.stringify({ items: all, next: null })), pageContext())
  const inQuarantine = Object.keys(page.quarantined[0]!.item as object).filter(
    (name) => !(name in credential()),
  )
  return { ...page.unknownFields, inQuarantine }
}

test('a field is named if its name looks like one and repeats no secret', async () => {
  learnSecret('tok.secret-7716')
  expect(
    await shownNames(['tok.secret-7716.x', 'a\u001b[31m\u009bb\n', 'is it "so"?', '9a', 'n'.repeat(64)]),
  ).toEqual({ '…': 3, '9a': 1, ['n'.repeat(64)]: 1, inQuarantine: ['…'] })
})

test.each(['ключ2024', 'Québec2024', 'hunte', '😀2024ab'])(
  'whatever the spelling of the secret: %s',
  async (secret) => {
    learnSecret(secret)
    const spellings = Object.values({ ...FORMS, ...CODES, ...OTHER_SPELLINGS }).map((write) => write(secret))
    const names = [...new Set(spellings.flatMap((each) => [each, `x_${each}`, `${each} is`]))]
    // What is cut off is no form of it.
    const shown = names.filter((name) => !name.includes([...secret].slice(0, -1).join('')))
    const { inQuarantine, ...counts } = await shownNames([...shown, 'is it', 'n'.repeat(65)])
    expect(counts).toEqual({ '…': shown.length + 2 })
    expect(inQuarantine).toEqual(['…'])
    expect(await shownNames(['device_id', 'source-2.x', '_x'])).toEqual({
      device_id: 1,
      'source-2.x': 1,
      _x: 1,
      inQuarantine: ['device_id'],
    })
  },
)
