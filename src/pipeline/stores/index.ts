import { azure } from './azure.ts'
import { s3 } from './s3.ts'
import type { StoreKind, StoreWords } from './store-words.ts'

export type { StoreKind } from './store-words.ts'

export const STORES = { s3, azure } as const satisfies Record<StoreKind, StoreWords>

export const STORE_KINDS = Object.keys(STORES) as readonly StoreKind[]

export const STORE_SECTIONS = { s3: s3.section, azure: azure.section } satisfies Record<StoreKind, unknown>

/** The addresses of stores, for messages: `s3://bucket/prefix or az://container/prefix`. */
export const ADDRESSES = Object.values(STORES)
  .map(({ address }) => address)
  .join(' or ')

/** What leads to a store, in errors: its address, or a variable that its client reads. */
export const IN_STORE = new RegExp(
  `^(?:${Object.values(STORES)
    .map(({ scheme, environment }) => `${scheme}://\\S*|${environment}\\w+`)
    .join('|')})$`,
)

/** The store that a path names by its scheme; undefined: it is a folder. */
export function storeOf(path: string): StoreKind | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(path) ?? []
  return STORE_KINDS.find((kind) => STORES[kind].scheme === scheme?.toLowerCase())
}
