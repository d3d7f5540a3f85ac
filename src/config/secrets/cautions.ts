import { stat } from 'node:fs/promises'
import type { Pipeline, Query } from '../../core/index.ts'
import { type Environment, secretVariables, variable } from './secrets.ts'

const OTHERS = 0o007

/** Something that a run does all the same, and that is rarely meant. */
export type Caution = {
  readonly message: string
  readonly fields: Readonly<Record<string, string | number>>
}

const MAX_NAMED = 3

/** What to warn of before a run: nothing of it stops one. */
export async function cautionsOf(pipeline: Pipeline, env: Environment): Promise<readonly Caution[]> {
  const open = await openSecretFiles(pipeline, env)
  return [
    ...open.map(({ variable, file }) => ({
      message: 'every user of this machine may read or change a file with a secret; chmod 600 it',
      fields: { variable, path: file },
    })),
    ...setTwice(pipeline, env),
    ...withWww(pipeline.extract.queries),
  ]
}

function setTwice(pipeline: Pipeline, env: Environment): Caution[] {
  const isSet = (name: string): boolean => variable(name, env) !== ''
  return [...new Set(secretVariables(pipeline))]
    .filter((name) => isSet(name) && isSet(`${name}_FILE`))
    .map((name) => ({
      message: `${name} and ${name}_FILE are both set: ${name} is used, the file is not read`,
      fields: {},
    }))
}

/** The service looks for the name as it stands, and addresses rarely end in @www.… */
function withWww(queries: readonly Query[]): Caution[] {
  const names = queries.flatMap((query) =>
    query.type === 'domain' && query.fqdn.startsWith('www.') ? [query.fqdn] : [],
  )
  const [first] = names
  if (first === undefined) return []
  const message = 'www. is searched for as it stands, and finds next to nothing; write the domain without it'
  const more = names.length - MAX_NAMED
  const domains = `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return [{ message, fields: { domains } }]
}

type OpenSecretFile = { readonly variable: string; readonly file: string }

/** Files with secrets of a pipeline, named by `<NAME>_FILE`, that every user of this machine may read or change. */
async function openSecretFiles(pipeline: Pipeline, env: Environment): Promise<readonly OpenSecretFile[]> {
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
