import { inject } from 'vitest'

/** `postgres://…` of a new, empty database of the server that all test files share. The first request starts it. */
export async function newDatabase(): Promise<string> {
  const response = await fetch(inject('postgres'))
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}
