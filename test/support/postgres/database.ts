import { inject } from 'vitest'

/** `postgres://…` of a new, empty database of the server that all test files share; the first to ask has it started. */
export async function newDatabase(): Promise<string> {
  const answer = await fetch(inject('postgres'))
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}
