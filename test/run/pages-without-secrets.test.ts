import { expect, test } from 'vitest'
import { LEFT_OUT, learnSecret } from '../../src/core/index.ts'
import { pagesWithoutSecrets } from '../../src/run/pages-without-secrets.ts'
import { credentialPaths } from '../../src/transform/decoder.ts'
import { credential } from '../transform/credentials.ts'
import { decodePlan, pageContext } from '../transform/plans.ts'

/** Names of unknown fields as they are shown: those of an item, and those of an item in quarantine. */
async function shownNames(name: string) {
  const { plain } = credentialPaths(decodePlan())
  const items = [credential({ id: 1, [name]: 1 }), credential({ id: null, [name]: 1 })]
  const decode = pagesWithoutSecrets(
    async (body, context) => plain(Buffer.from(body), context),
    () => {},
  )
  const page = await decode(Buffer.from(JSON.stringify({ items, next: null })), pageContext())
  return [page.unknownFields, page.quarantined[0]!.item]
}

test.each(['ключ2024', 'Æ1é!ñ', '密码12'])(
  'a secret whose bytes were taken for Latin-1 is no name of a field, although some are control characters: %s',
  async (secret) => {
    learnSecret(secret)
    for (const shown of await shownNames(Buffer.from(`pw ${secret}`).toString('latin1')))
      expect(shown).toMatchObject({ [LEFT_OUT]: expect.anything() })
  },
)

test('control characters are removed from the names of fields', async () => {
  for (const shown of await shownNames('a\u001b[31m\u009bb\n')) {
    expect(shown).toMatchObject({ 'a[31mb': expect.anything() })
  }
})
