import { stat } from 'node:fs/promises'
import type { Pipeline } from '../core/index.ts'
import { type Environment, secretVariables, variable } from './secrets.ts'

const OTHERS = 0o007

export type OpenSecretFile = { readonly variable: string; readonly file: string }

/** Files with secrets of a pipeline, named by `<NAME>_FILE`, that every user of this machine may read or change. */
export async function openSecretFiles(
  pipeline: Pipeline,
  env: Environment,
): Promise<readonly OpenSecretFile[]> {
  const found: OpenSecretFile[] = []
  for (const name of new Set(secretVariables(pipeline))) {
    // The file is not read where the variable itself is set.
    const file = variable(name, env) === '' ? variable(`${name}_FILE`, env) : ''
    if (file !== '' && (await isOpenToOthers(file))) found.push({ variable: `${name}_FILE`, file })
  }
  return found
}

/** Whether users other than a file's owner and group may do anything with it. A group is often how a service is given one. */
export async function isOpenToOthers(path: string): Promise<boolean> {
  // Windows has no such permissions, and Node.js makes some up.
  if (process.platform === 'win32') return false
  const found = await stat(path).catch(() => null)
  return found !== null && (found.mode & OTHERS) !== 0
}
