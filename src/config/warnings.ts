import { LEFT_OUT, type Pipeline } from '../core/index.ts'
import { UNIT_MICROS } from './resolve/resolve-extract.ts'
import { type Environment, readSecret, secretVariables } from './secrets/secrets.ts'

/** The run does it, but it is rarely intended. */
type Warning = {
  readonly message: string
  readonly fields: Readonly<Record<string, string | number>>
}

/** The warnings before a run. None of them stops it. */
export async function warningsFor(pipeline: Pipeline, env: Environment): Promise<readonly Warning[]> {
  return [...(await veryShort(pipeline, env)), ...withManyWindows(pipeline)]
}

/** Ordinary words contain shorter ones, and every text that repeats a secret is left out. */
const MIN_SECRET = 8

async function veryShort(pipeline: Pipeline, env: Environment): Promise<Warning[]> {
  const warnings: Warning[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    const secret = await readSecret(name, env).catch(() => null)
    if (secret === null || secret.length >= MIN_SECRET) continue
    const message = `${name} holds fewer than ${MIN_SECRET} characters: messages that contain them become "${LEFT_OUT}"; make sure that it is whole`
    warnings.push({ message, fields: {} })
  }
  return warnings
}

const MANY_WINDOWS = 2000

/** Each window of each query has its own folder. */
function withManyWindows({ extract, load }: Pipeline): Warning[] {
  const { windows, queries } = extract
  const every = windows?.every
  if (windows == null || every == null || !('count' in every) || !load.partitionBy.includes('window'))
    return []
  const until = windows.until === 'now' ? Date.now() * 1000 : windows.until
  const count = Math.ceil((until - windows.from) / (every.count * UNIT_MICROS[every.unit]))
  if (count <= MANY_WINDOWS) return []
  const folders = count * (load.partitionBy.includes('query') ? queries.length : 1)
  const message = 'extract.windows.every makes very many folders with small files; choose longer windows'
  return [{ message, fields: { windows: count, folders } }]
}
