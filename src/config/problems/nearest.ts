import { distance } from 'fastest-levenshtein'

/** The known word that a mistyped one most likely means, or null when none is close. */
export function nearest(word: string, known: Iterable<string>): string | null {
  // Distances are quadratic in the length; nobody mistypes a word into one this long.
  if (word.length > 64) return null
  let best: string | null = null
  let least = Math.max(2, Math.ceil(word.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(word.toLowerCase(), candidate)
    // Replacing every letter is no likeness.
    if (steps < least && steps < Math.max(word.length, candidate.length) - 1) {
      best = candidate
      least = steps
    }
  }
  return best
}

/** `; did you mean `x`?`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const match = nearest(word, known)
  return match === null ? '' : `; did you mean \`${match}\`?`
}
