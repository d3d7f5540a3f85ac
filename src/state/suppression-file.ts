import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { SuppressList } from '../rows/index.ts'
import { maskKeyCheck } from './settings.ts'

/** The people whom the data set must not hold again. `--fresh` keeps it. */
export const SUPPRESSION_PATH = '_state/suppression.json'
/** The same after a change, until the checkpoint names it. */
export const NEXT_SUPPRESSION_PATH = '_state/suppression.next.json'

/** Digests of forgotten people, and their key. Whoever has a random key can test guesses, so the file is 0600. */
const suppressionList = z.strictObject({
  key: z.union([
    z.strictObject({ random: z.base64().length(44) }),
    z.strictObject({ mask_key_check: z.string().regex(/^[0-9a-f]{32}$/) }),
  ]),
  /** In hex, sorted: their order says nothing. */
  digests: z.array(z.string().regex(/^[0-9a-f]{64}$/)),
})
export type SuppressionList = Readonly<z.infer<typeof suppressionList>>

const suppressionFile = z.strictObject({
  version: z.literal(1),
  lists: z.array(suppressionList),
  sha256: z.string(),
})

export function suppressionText(lists: readonly SuppressionList[]): string {
  return `${JSON.stringify({ version: 1, lists, sha256: checksumOf(lists) })}\n`
}

/** null: it is no such file, or one that was changed. */
export function parseSuppression(text: string): readonly SuppressionList[] | null {
  try {
    const file = suppressionFile.safeParse(JSON.parse(text)).data
    return file === undefined || checksumOf(file.lists) !== file.sha256 ? null : file.lists
  } catch {
    return null
  }
}

/** Detects changes, also a digest that is gone. The checkpoint names the list by it. */
export function checksumOf(lists: readonly SuppressionList[]): string {
  return createHash('sha256').update(JSON.stringify(lists)).digest('hex')
}

/** A list without digests, under the mask key of the data set, or a new random key. */
export function newList(maskKey: Uint8Array | null): SuppressionList {
  const key =
    maskKey === null
      ? { random: randomBytes(32).toString('base64') }
      : { mask_key_check: maskKeyCheck(maskKey) }
  return { key, digests: [] }
}

/** The list with its key; null: it needs another mask key. */
export function withKey({ key, digests }: SuppressionList, maskKey: Uint8Array | null): SuppressList | null {
  if ('random' in key) return { key: Buffer.from(key.random, 'base64'), digests }
  return maskKey !== null && key.mask_key_check === maskKeyCheck(maskKey) ? { key: maskKey, digests } : null
}

/** The list with more digests; the same object if it has them all. */
export function withDigests(list: SuppressionList, digests: Iterable<string>): SuppressionList {
  const all = new Set([...list.digests, ...digests])
  return all.size === list.digests.length ? list : { key: list.key, digests: [...all].sort() }
}
