import type { Pipeline } from '../core/index.ts'
import { pipelineFrom, type ReadOptions, readPipeline, readSettings } from './read-pipeline.ts'
import { learnSecrets } from './secrets.ts'

/** What came from another machine, where a pipeline file was read. */
type Submitted = {
  readonly file: string
  /** What it asks for is missing: that is read here, from the file itself. */
  readonly hidden: boolean
  readonly settings: { readonly name: string; readonly extract: Readonly<Record<string, unknown>> }
}

/** The pipeline that was submitted. @throws ExportError `config` */
export async function readSubmitted(
  { file, hidden, settings }: Submitted,
  options: ReadOptions,
): Promise<Pipeline> {
  let { extract } = settings
  if (hidden) {
    await learnSecrets(options.env)
    const { queries } = (await readSettings(await readPipeline(file, options), options)).extract
    extract = { ...extract, queries }
  }
  const pipeline = await pipelineFrom(JSON.stringify({ ...settings, extract }), { ...options, env: {} })
  await learnSecrets(options.env, pipeline)
  return { ...pipeline, file }
}
