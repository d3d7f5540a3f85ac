import { checkRequirements, explainPipeline, readMaskKey, readSecret } from '../../config/index.ts'
import { isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { readPlan, testToken } from '../../run/index.ts'
import { command } from '../command.ts'
import { DONE, exitCode } from '../exit-code.ts'
import { explanationJson, explanationLines } from '../explanation.ts'
import type { Io } from '../io.ts'
import { overridesFrom, pipelineFrom, runPipelineOptions } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { counted } from '../quantities.ts'
import { announceStop } from '../signals.ts'
import { styleFor, wantsColour } from '../style.ts'
import { tryLater } from '../try-later.ts'

export const check = command({
  options: (yargs) =>
    runPipelineOptions(yargs)
      .options({ json: { type: 'boolean', default: false, describe: 'Print it as JSON' } })
      .example('$0 check pipeline.yaml', 'Before the first run; costs no search')
      .example('$0 check pipeline.yaml && $0 run pipeline.yaml', 'For a job that should not begin in vain'),
  async run(args, io) {
    const style = styleFor(wantsColour(io.stdout.terminal, io.env))
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const overrides = overridesFrom(args)
    const explanation = await explainPipeline(pipeline, { env: io.env, cwd: io.cwd, overrides })
    if (!args.json) for (const text of explanationLines(explanation)) await io.stdout.line(text)
    const checks: { name: string; ok: boolean; finding: string }[] = []
    const tell = async (name: string, ok: boolean, finding: string): Promise<void> => {
      checks.push({ name, ok, finding })
      if (!args.json)
        await io.stdout.line(line(name, ok ? style('green', 'ok') : style('red', 'no'), finding))
    }
    let code = DONE
    for (const [name, step] of stepsOf(pipeline, args, io)) {
      try {
        await tell(name, true, await step())
      } catch (error) {
        if (!isExportError(error)) throw error
        await tell(name, false, error.what)
        io.reportError(tryLater(error))
        if (code === DONE) code = exitCode(error.kind, io.signals.received)
      }
    }
    if (args.json) {
      const { name } = pipeline
      await io.stdout.line(
        plainJson({ pipeline: name, ok: code === DONE, checks, ...explanationJson(explanation) }),
      )
    }
    return code
  },
})

function line(name: string, verdict: string, finding: string): string {
  return `${verdict}  ${name.padEnd(12)}${plainLine(finding)}`
}

/** Each resolves to what was found, in words. */
type Step = () => Promise<string>
type Consents = { readonly allowPlaintext: boolean }

/** What a run would look at, in the same order: so the first that fails has the run's exit code. */
function stepsOf(
  pipeline: Pipeline,
  consents: Consents,
  io: Io,
): readonly (readonly [name: string, step: Step])[] {
  return [
    ['file', async () => describePipeline(pipeline)],
    ['environment', () => checkEnvironment(pipeline, consents, io)],
    ['data set', () => checkDataSet(pipeline, io)],
    ['service', () => checkService(pipeline, io)],
  ]
}

function describePipeline({ file, name, extract, transform, load }: Pipeline): string {
  const queries = counted(extract.queries.length, 'query', 'queries')
  return `${file}: ${name}: ${queries} of ${extract.resource}, secrets ${transform.secret}, to ${load.format.kind}`
}

async function checkEnvironment(
  pipeline: Pipeline,
  { allowPlaintext }: Consents,
  { env, cwd }: Io,
): Promise<string> {
  const variables = await checkRequirements(pipeline, { env, cwd, allowPlaintext })
  return variables.join(', ')
}

/** Whether its folder can be written, and whether a run may go on from what is there. */
async function checkDataSet(pipeline: Pipeline, { env }: Io): Promise<string> {
  // What is missing of key and consent has been told above.
  const maskKey = await readMaskKey(pipeline, env).catch(() => null)
  const options = {
    clock: systemClock,
    maskKey,
    allowPlaintext: true,
    readSecret: (name: string) => readSecret(name, env),
  }
  const { partitions } = await readPlan(pipeline, options)
  const { total, done, partial } = partitions
  return `${pipeline.load.path}: ${counted(total, 'partition')}, ${done} done, ${partial} partial`
}

async function checkService({ service }: Pipeline, io: Io): Promise<string> {
  const { auth } = service
  const variable = auth.kind === 'token' ? auth.tokenEnv : auth.apiKeyEnv
  // What the environment lacks has been told above.
  if ((await readSecret(variable, io.env)) === null) return 'not asked: there is nothing to sign in with'
  const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
  try {
    const { url, info } = await testToken(service, {
      clock: systemClock,
      readSecret: (name) => readSecret(name, io.env),
      stop: signals.stop,
      log: io.log,
    })
    if (info === null) {
      return `the token is not tested: there is no test at ${url}; service.token_test_url may name another`
    }
    const facts = [
      ...(info.organizationId === null ? [] : [`organization ${info.organizationId}`]),
      ...(info.tenantId === null ? [] : [`tenant ${info.tenantId}`]),
      ...(info.scopes.length === 0 ? [] : [`scopes ${info.scopes.join(', ')}`]),
    ]
    return `the token is accepted${facts.length === 0 ? '' : `: ${facts.join(', ')}`}`
  } finally {
    signals.release()
  }
}
