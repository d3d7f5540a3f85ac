import { type DecodedPage, ExportError, type Partition, type QuarantineLimit } from '../core/index.ts'
import type { PartitionRecord } from '../state/index.ts'

// A share of fewer items says little: one broken item of ten is no tenth of everything.
const LEAST_SHARED = 100

/**
 * Whether a partition has set aside more of its items than it may, with a page that is not committed yet; all of its
 * pages count, those of earlier runs too.
 * @returns the error that it fails with; null: all is well
 */
export function excessOf(
  { key }: Partition,
  limit: QuarantineLimit,
  record: PartitionRecord | undefined,
  page?: DecodedPage,
): ExportError | null {
  const quarantined = (record?.quarantined ?? 0) + (page?.quarantined.length ?? 0)
  const seen = (record?.rows ?? 0) + (page?.rows ?? 0) + quarantined
  const allowed = allowedOf(limit)
  if (quarantined === 0 || !allowed.isExceeded(quarantined, seen)) return null
  return new ExportError(
    'data',
    `${quarantined} of ${seen} items break the schema, and transform.max_quarantined is ${allowed.text}`,
    key,
    'Look at them in _quarantine and run again, with a higher transform.max_quarantined if they may be left out.',
  )
}

type Allowed = { readonly text: string; isExceeded(quarantined: number, seen: number): boolean }

function allowedOf(limit: QuarantineLimit): Allowed {
  switch (limit.kind) {
    case 'count':
      return { text: String(limit.items), isExceeded: (quarantined) => quarantined > limit.items }
    case 'share':
      return {
        text: `${limit.percent}%`,
        isExceeded: (quarantined, seen) => seen >= LEAST_SHARED && 100 * quarantined > limit.percent * seen,
      }
  }
}
