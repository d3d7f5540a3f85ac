import { LEFT_OUT, type Pipeline } from '../core/index.ts'
import { type Environment, readSecret, secretVariables } from './secrets/secrets.ts'

/** Ordinary words contain shorter ones, and every text that repeats a secret is left out. */
const MIN_SECRET = 8

/** The warnings before a run, which does what is rarely intended. None of them stops it. */
export async function warningsFor(pipeline: Pipeline, env: Environment): Promise<readonly string[]> {
  const warnings: string[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    const secret = await readSecret(name, env).catch(() => null)
    if (secret === null || secret.length >= MIN_SECRET) continue
    warnings.push(
      `${name} holds fewer than ${MIN_SECRET} characters: messages that contain them become "${LEFT_OUT}"; make sure that it is whole`,
    )
  }
  return warnings
}
