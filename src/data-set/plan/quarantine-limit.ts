import type { QuarantineLimit } from '../../core/index.ts'

// A share of fewer items means little: one broken item of ten does not make a tenth of all items.
const MIN_SHARED = 100

/** `transform.max_quarantined`, of one partition. */
type Allowed = { readonly text: string; isExceeded(quarantined: number, seen: number): boolean }

export function allowedOf(limit: QuarantineLimit): Allowed {
  switch (limit.kind) {
    case 'count':
      return { text: String(limit.items), isExceeded: (quarantined) => quarantined > limit.items }
    case 'share':
      return {
        text: `${limit.percent}%`,
        isExceeded: (quarantined, seen) => seen >= MIN_SHARED && 100 * quarantined > limit.percent * seen,
      }
  }
}

/** Reads the text of {@link allowedOf} back. */
export function limitFrom(text: string): QuarantineLimit {
  const value = Number.parseFloat(text)
  return text.endsWith('%') ? { kind: 'share', percent: value } : { kind: 'count', items: value }
}
