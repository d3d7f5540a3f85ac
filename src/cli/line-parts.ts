import { widthOf } from './width.ts'

/** A part of a line: the texts that may stand for it, the longest first, and how the chosen one is shown. */
export type Part = {
  readonly variants: readonly string[]
  readonly paint?: (text: string) => string
  /** The lowest finds room first. */
  readonly rank: number
}

const GAP = '  '

/**
 * A line of as many parts as fit, in the order given: first each gets room for its shortest text, then they take
 * turns to get a longer one.
 */
export function lineOf(parts: readonly Part[], columns: number): string {
  const byRank = [...parts].sort((a, b) => a.rank - b.rank)
  /** Which of its variants each part has, and the width of that. */
  const chosen = new Map<Part, { readonly variant: number; readonly width: number }>()
  let used = -GAP.length
  const choose = (part: Part, variant: number): boolean => {
    const before = chosen.get(part)
    const width = widthOf(part.variants[variant] ?? '')
    const more = before === undefined ? GAP.length + width : width - before.width
    if (used + more > columns) return false
    used += more
    chosen.set(part, { variant, width })
    return true
  }
  let growing = byRank.filter((part) => choose(part, part.variants.length - 1))
  while (growing.length > 0) {
    growing = growing.filter((part) => {
      const { variant } = chosen.get(part)!
      return variant > 0 && choose(part, variant - 1)
    })
  }
  return parts
    .flatMap((part) => {
      const { variant } = chosen.get(part) ?? {}
      if (variant === undefined) return []
      const text = part.variants[variant]!
      return [part.paint === undefined ? text : part.paint(text)]
    })
    .join(GAP)
}
