import { afterAll } from 'vitest'

// Files share a process: what one of them sets in its environment is not for the next one.
const before = { ...process.env }

afterAll(() => {
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name]
  Object.assign(process.env, before)
})
