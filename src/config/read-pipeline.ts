import { resolve } from 'node:path'
import { ExportError, type Pipeline } from '../core/index.ts'
import { checkShape } from './check-shape.ts'
import { expandTree } from './expand-tree.ts'
import { type Overrides, override } from './override.ts'
import { parseYaml } from './parse-yaml.ts'
import { readText } from './read-text.ts'
import { resolveExtract } from './resolve-extract.ts'
import { resolveLoad } from './resolve-load.ts'
import { resolveService } from './resolve-service.ts'
import { resolveTransform } from './resolve-transform.ts'
import type { Environment } from './secrets.ts'

export type ReadOptions = {
  readonly env: Environment
  readonly overrides?: Overrides
  /** Working directory: relative paths of the pipeline file itself and of the output start there. */
  readonly cwd: string
  /** Version of Node that the pipeline will run on, such as `v22.15.0`; this process's own when left out. */
  readonly nodeVersion?: string
}

/**
 * Reads a pipeline file, with the flags in place of what it says and defaults where it says nothing.
 * @throws ExportError 'config' that names every problem with file, line and column, or with the flag
 */
export async function readPipeline(file: string, options: ReadOptions): Promise<Pipeline> {
  const path = resolve(options.cwd, file)
  const read = await readText(path)
  if (!read.ok) {
    throw new ExportError(
      'config',
      `The pipeline file ${read.reason}`,
      file,
      'Name a pipeline file in YAML; `spillway init` writes one to begin with.',
    )
  }
  const { tree, problems } = parseYaml(file, read.text)
  if (tree.root === null) {
    problems.add([], 'the file is empty; `spillway init` writes one to begin with')
    throw problems.error()
  }
  override(tree, options.overrides ?? {})
  expandTree(tree, options.env, problems)
  const settings = checkShape(tree, problems)

  const service = resolveService(settings.service, problems)
  const extract = await resolveExtract(settings, { file, path }, problems)
  const transform = resolveTransform(settings, problems)
  const load = resolveLoad(settings, transform.columns, problems, {
    cwd: options.cwd,
    nodeVersion: options.nodeVersion ?? process.version,
  })
  if (!problems.none) throw problems.error()
  return { name: settings.name, file, service, extract, transform, load }
}
