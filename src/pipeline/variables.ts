import type { Pipeline } from '../core/index.ts'
import { isContainer } from './problems/tree.ts'
import { type ReadOptions, sourceOf } from './read-pipeline.ts'
import { needsMaskKey } from './secrets/secrets.ts'
import { STORES } from './stores.ts'
import { namesIn } from './yaml/expand.ts'
import { readTree } from './yaml/read-tree.ts'

/** What a scheduler needs to know of a pipeline file. */
type FileNeeds = {
  readonly text: string
  /** Whether it names other files. */
  readonly namesOthers: boolean
  /** The variables that a run reads, in the order in which the file names them. */
  readonly variables: readonly string[]
}

/** @param pipeline as it was read with the same options */
export async function fileNeeds(pipeline: Pipeline, options: ReadOptions): Promise<FileNeeds> {
  const source = await sourceOf(pipeline.file, options)
  const { tree } = await readTree(source, options.env)
  const named = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value === 'string') for (const name of namesIn(value)) named.add(name)
    if (isContainer(value)) for (const inner of Object.values(value)) visit(inner)
  }
  visit(tree.root)
  const { service, extract, transform, load } = pipeline
  const { auth } = service
  return {
    text: source.text,
    namesOthers: /^\s*(?:extends|domains_file)\s*:/m.test(source.text),
    variables: [
      ...new Set([
        ...named,
        auth.kind === 'token' ? auth.tokenEnv : auth.apiKeyEnv,
        ...extract.queries.flatMap((query) => (query.type === 'secret' ? [query.secretEnv] : [])),
        ...(needsMaskKey(pipeline) ? [transform.maskKeyEnv] : []),
        ...(load.location.kind === 'disk' ? [] : STORES[load.location.kind].variables),
      ]),
    ],
  }
}
