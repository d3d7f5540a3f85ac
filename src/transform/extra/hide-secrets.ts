import { type ExtraField, LEFT_OUT, repeatsGiven } from '../../core/index.ts'
import type { ExtraValue } from '../columns/index.ts'

/** A value of which the row's own secrets have been taken out: texts that repeat one are left out as a whole. */
export function withoutSecrets(
  type: ExtraField['type'],
  value: ExtraValue,
  raw: string,
  secrets: readonly string[],
): ExtraValue {
  switch (type) {
    case 'string':
      return secrets.some((secret) => repeatsGiven(value as string, secret)) ? LEFT_OUT : value
    case 'json':
      return secrets.some((secret) => jsonRepeats(value as string, secret)) ? JSON.stringify(LEFT_OUT) : value
    case 'int64':
    case 'timestamp':
      // Such a column can hold no other text.
      return secrets.includes(raw) ? null : value
    case 'boolean':
    case 'strings':
      return value
  }
}

/** A short secret counts only as a whole text, so every scalar and name is held against it by itself. */
function jsonRepeats(json: string, secret: string): boolean {
  if (repeatsGiven(json, secret)) return true
  return secret.length < SHORT && scalars(JSON.parse(json)).includes(secret)
}

/** Beyond it a secret is found wherever it stands. */
const SHORT = 8

/** Without recursion: nesting has no limit. */
function scalars(root: unknown): readonly string[] {
  const texts: string[] = []
  const waiting = [root]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== 'object' || node === null) texts.push(String(node))
    else if (Array.isArray(node)) for (const inner of node) waiting.push(inner)
    else
      for (const [name, inner] of Object.entries(node)) {
        texts.push(name)
        waiting.push(inner)
      }
  }
  return texts
}
