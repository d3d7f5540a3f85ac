import type { Pipeline } from '../core/index.ts'
import { isContainer, valueAt } from './problems/tree.ts'
import { type ReadOptions, readSource, sourceOf } from './read-pipeline.ts'
import { needsMaskKey, secretVariables } from './secrets/secrets.ts'
import { STORES } from './stores/index.ts'
import { namesIn } from './yaml/expand.ts'

/** What a scheduler needs to know of a pipeline file. */
type FileNeeds = {
  readonly pipeline: Pipeline
  readonly text: string
  /** Whether it names other files. */
  readonly namesOthers: boolean
  /** The variables that a run reads, in the order in which the file names them. */
  readonly variables: readonly string[]
}

/** @throws ExportError 'config' when the file is invalid */
export async function fileNeeds(file: string, options: ReadOptions): Promise<FileNeeds> {
  const source = await sourceOf(file, options)
  const { pipeline, given } = await readSource(source, options)
  const named = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value === 'string') for (const name of namesIn(value)) named.add(name)
    if (isContainer(value)) for (const inner of Object.values(value)) visit(inner)
  }
  visit(given.root)
  const { transform, load } = pipeline
  const secrets = secretVariables(pipeline)
  return {
    pipeline,
    text: source.text,
    namesOthers: given.sources.length > 1 || valueAt(given.root, ['extract', 'domains_file']) !== undefined,
    variables: [
      ...new Set([
        ...named,
        ...secrets.filter((name) => name !== transform.maskKeyEnv || needsMaskKey(pipeline)),
        ...(load.location.kind === 'disk' ? [] : STORES[load.location.kind].variables),
      ]),
    ],
  }
}
