import * as z from 'zod'
import type { DataSetLocation } from '../../core/index.ts'
import { type Condition, onlyIf } from '../schema/key.ts'

/** The sections of the file that say where a data set lies. */
export type StoreKind = Exclude<DataSetLocation['kind'], 'disk'>

/** What a pipeline file and the environment say of an object storage. */
export type StoreWords = {
  readonly scheme: string
  /** Of the address, with the bucket and what follows it as groups. */
  readonly pattern: RegExp
  /** An example of an address, and what its bucket has to be. */
  readonly address: string
  readonly rule: string
  /** Its section of `load`, as it is declared; it may be left out. */
  readonly section: z.ZodType
  readonly location: (section: never, bucket: string, prefix: string) => DataSetLocation
  /** The beginning of all variables that its client reads by itself. */
  readonly environment: string
  /** Those that hold secrets, which no message may repeat. */
  readonly secrets: readonly string[]
  /** Parts of these that are secrets, too, percent-encoded perhaps; null: none. */
  readonly secretPart: RegExp | null
}

export function onlyIn(scheme: string): Condition {
  const addresses = z.string().regex(new RegExp(`^${scheme}:`))
  return onlyIf('load.path', addresses, () => `goes with a load.path that begins with ${scheme}://`)
}
