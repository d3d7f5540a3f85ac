import { describe } from 'vitest'
import { aLockHolds } from './conformance/a-lock-holds.ts'
import { anySequence } from './conformance/any-sequence.ts'
import { filesAreWhole } from './conformance/files-are-whole.ts'
import { mismatchesAreFound } from './conformance/mismatches-are-found.ts'
import { namesAreListed } from './conformance/names-are-listed.ts'
import { oneOwnerAtATime } from './conformance/one-owner-at-a-time.ts'
import type { MakeWorld } from './conformance/world.ts'

export type ConformanceOptions = {
  /** Random sequences of operations to try; fewer if each operation takes long. */
  readonly sequences?: number
  /** The lock and the sequences alone, which come through every operation. */
  readonly isBrief?: boolean
}

/** The contract of `Store` and `OwnedStore` (`src/core/store.ts`), for any backend. */
export function storeConformance(
  name: string,
  make: MakeWorld,
  { sequences = 30, isBrief = false }: ConformanceOptions = {},
) {
  describe(name, () => {
    aLockHolds(make)
    anySequence(make, sequences)
    if (isBrief) return
    filesAreWhole(make)
    namesAreListed(make)
    mismatchesAreFound(make)
    oneOwnerAtATime(make)
  })
}
