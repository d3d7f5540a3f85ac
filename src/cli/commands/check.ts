import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { checkRequirements, readNamingKey, readSecret } from '../../config/index.ts'
import { ExportError, isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { readPlan, testToken } from '../../run/index.ts'
import { command } from '../command.ts'
import { DONE, exitCode } from '../exit-code.ts'
import type { Io } from '../io.ts'
import { pipelineFrom, runPipelineOptions } from '../pipeline-options.ts'
import { plainLine } from '../plain-text.ts'
import { counted } from '../quantities.ts'
import { announceStop } from '../signals.ts'
import { styleFor, wantsColour } from '../style.ts'

export const check = command({
  options: (yargs) =>
    runPipelineOptions(yargs).example('$0 check pipeline.yaml', 'Before the first run; costs no search'),
  async run(args, io) {
    const style = styleFor(wantsColour(io.stdout.terminal, io.env))
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    let code = DONE
    for (const [name, step] of stepsOf(pipeline, io)) {
      try {
        await io.stdout.line(line(name, style('green', 'ok'), await step()))
      } catch (error) {
        if (!isExportError(error)) throw error
        await io.stdout.line(line(name, style('red', 'no'), error.what))
        io.reportError(error)
        if (code === DONE) code = exitCode(error.kind, io.signals.received)
      }
    }
    return code
  },
})

function line(name: string, verdict: string, finding: string): string {
  return `${verdict}  ${name.padEnd(12)}${plainLine(finding)}`
}

/** Each resolves to what was found, in words. */
type Step = () => Promise<string>

function stepsOf(pipeline: Pipeline, io: Io): readonly (readonly [name: string, step: Step])[] {
  return [
    ['file', async () => describePipeline(pipeline)],
    ['environment', () => checkEnvironment(pipeline, io)],
    ['output', () => checkOutput(pipeline)],
    ['checkpoint', () => checkCheckpoint(pipeline, io)],
    ['service', () => checkService(pipeline, io)],
  ]
}

function describePipeline({ file, name, extract, transform, load }: Pipeline): string {
  const queries = counted(extract.queries.length, 'query', 'queries')
  return `${file}: ${name}: ${queries} of ${extract.resource}, secrets ${transform.secret}, to ${load.format.kind}`
}

async function checkEnvironment(pipeline: Pipeline, { env, cwd }: Io): Promise<string> {
  const variables = await checkRequirements(pipeline, { env, cwd, allowPlaintext: true })
  const consent = pipeline.transform.secret === 'plaintext' ? '; each run needs --allow-plaintext' : ''
  return `${variables.join(', ')}${consent}`
}

/** Looks whether the folder, or the nearest one above it that is there, can be written; makes nothing. */
async function checkOutput({ load, file }: Pipeline): Promise<string> {
  for (let path = load.path; ; path = dirname(path)) {
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && path !== dirname(path)) return null
      throw notWritable(load.path, file, error)
    })
    if (found === null) continue
    if (!found.isDirectory()) throw notWritable(load.path, file, new Error(`${path} is no folder`))
    await access(path, constants.W_OK | constants.X_OK).catch((error: unknown) => {
      throw notWritable(load.path, file, error)
    })
    return load.path
  }
}

function notWritable(path: string, file: string, cause: unknown): ExportError {
  return new ExportError(
    'config',
    `The output folder can not be written: ${path}`,
    file,
    'Choose another load.path, or --output, or change the permissions.',
    { cause },
  )
}

async function checkCheckpoint(pipeline: Pipeline, io: Io): Promise<string> {
  const { partitions } = await readPlan(pipeline, Date.now(), await readNamingKey(pipeline, io))
  return `${counted(partitions.total, 'partition')}, ${partitions.done} done, ${partitions.partial} partial`
}

async function checkService({ service }: Pipeline, io: Io): Promise<string> {
  const { tokenTestUrl } = service
  if (tokenTestUrl === null) return 'not asked: service.token_test_url is not set'
  const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
  try {
    const { tenantId, organizationId, scopes } = await testToken(service, tokenTestUrl, {
      clock: systemClock,
      readSecret: (name) => readSecret(name, io.env),
      stop: signals.stop,
      log: io.log,
    })
    const facts = [
      ...(organizationId === null ? [] : [`organization ${organizationId}`]),
      ...(tenantId === null ? [] : [`tenant ${tenantId}`]),
      ...(scopes.length === 0 ? [] : [`scopes ${scopes.join(', ')}`]),
    ]
    return `the token is accepted${facts.length === 0 ? '' : `: ${facts.join(', ')}`}`
  } finally {
    signals.release()
  }
}
