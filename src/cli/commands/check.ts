import { stringify } from 'yaml'
import {
  ExportError,
  hidesQueries,
  isExportError,
  type Pipeline,
  rulesOf,
  systemClock,
} from '../../core/index.ts'
import { namingLocations, probe, readPlan } from '../../data-set/index.ts'
import {
  checkRequirements,
  learnSecrets,
  readMaskKey,
  readSecret,
  resolvedSettings,
} from '../../pipeline/index.ts'
import { requireRoom, type SearchPath, type TokenTest, testService, testToken } from '../../run/index.ts'
import { runOptions } from '../../run-options.ts'
import { command, flag, type Io } from '../command-line/command.ts'
import {
  FILE,
  type OverrideFlags,
  overridesFrom,
  pipelineFrom,
  RUN_OVERRIDES,
} from '../command-line/pipeline-options.ts'
import { tryLater } from '../log/log.ts'
import { catalogText, comparedCatalog, unsetVariable } from '../results/catalog.ts'
import { DONE, exitCode } from '../terminal/exit-code.ts'
import { untilStopped } from '../terminal/signals.ts'
import { counted, plainJson, plainLine, plainText } from '../terminal/text.ts'

export const check = command({
  positionals: { pipeline: FILE },
  flags: {
    ...RUN_OVERRIDES,
    resolved: flag(
      'Instead, print the pipeline with everything resolved, as YAML: flags, variables, defaults',
    ),
    json: flag('Print it as JSON'),
  },
  examples: [
    ['$0 check pipeline.yaml', 'Before the first run; costs no search'],
    ['$0 check pipeline.yaml --resolved', 'What the file, its flags and variables come to'],
    ['$0 check pipeline.yaml && $0 run pipeline.yaml', 'Only run if the check passes'],
  ],
  eachFile: true,
  async run(args, io) {
    const { style } = io.stdout
    if (args.resolved) {
      await io.stdout.line(await resolvedText(args, io))
      return DONE
    }
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const checks: { name: string; ok: boolean; finding: string }[] = []
    const show = async (name: string, ok: boolean, finding: string): Promise<void> => {
      checks.push({ name, ok, finding })
      if (args.json) return
      const verdict = ok ? style('green', 'ok') : style('red', 'no')
      await io.stdout.line(`${verdict}  ${name.padEnd(11)}  ${plainLine(finding)}`)
    }
    let code = DONE
    for (const [name, step] of stepsOf(pipeline, args, io)) {
      try {
        const finding = await step()
        if (finding !== null) await show(name, true, finding)
      } catch (error) {
        if (!isExportError(error)) throw error
        await show(name, false, error.what)
        io.reportError(tryLater(error))
        if (code === DONE) code = exitCode(error.kind, io.signals.received)
      }
    }
    if (args.json) await io.stdout.line(plainJson({ pipeline: pipeline.name, ok: code === DONE, checks }))
    return code
  },
})

async function resolvedText(
  args: OverrideFlags & { readonly pipeline: string; readonly json: boolean },
  { env, cwd }: Io,
): Promise<string> {
  await learnSecrets(env)
  const settings = await resolvedSettings(args.pipeline, { env, cwd, overrides: overridesFrom(args) })
  if (args.json) return plainJson(settings)
  return plainText(stringify(settings, { lineWidth: 0 }).trimEnd())
}

/** Resolves to its finding; null: nothing could be tested, for a reason that a step before has given. */
type Step = () => Promise<string | null>

/** The checks of a run in the same order, so that the first failure has the run's exit code. */
function stepsOf(
  pipeline: Pipeline,
  { allowPlaintext }: { readonly allowPlaintext: boolean },
  io: Io,
): readonly (readonly [name: string, step: Step])[] {
  const environment = () => checkRequirements(pipeline, { env: io.env, allowPlaintext })
  return [
    ['file', async () => describePipeline(pipeline)],
    ['environment', async () => (await environment()).join(', ')],
    ['data set', () => checkDataSet(pipeline, io)],
    ['service', () => checkService(pipeline, io)],
    ...(pipeline.load.catalog === null ? [] : [['catalog', () => checkCatalog(pipeline, io)] as const]),
  ]
}

function describePipeline({ file, name, extract, transform, load }: Pipeline): string {
  const queries = counted(extract.queries.length, 'query', 'queries')
  return `${file}: ${name}: ${queries} of ${extract.resource}, secrets ${transform.secret}, to ${load.format.kind}`
}

async function checkDataSet(pipeline: Pipeline, { env }: Io): Promise<string> {
  // Missing keys and consent are reported by the step before.
  const maskKey = await readMaskKey(pipeline, env).catch(() => null)
  const { partitions } = await readPlan(
    pipeline,
    await runOptions(pipeline, { env, maskKey, allowPlaintext: true }),
  )
  const { total, done, partial } = partitions
  await namingLocations(pipeline, () => probe(pipeline))
  if (done < total) await requireRoom(pipeline)
  return `${pipeline.load.path}: ${counted(total, 'partition')}, ${done} done, ${partial} partial`
}

async function checkService(pipeline: Pipeline, io: Io): Promise<string | null> {
  const { service, extract } = pipeline
  const { auth } = service
  const secret = auth.secretIn
  if ((await readSecret(secret, io.env)) === null) return null
  const { env, log } = io
  const read = (name: string) => readSecret(name, env)
  return untilStopped(io, async ({ stop }) => {
    const options = { clock: systemClock, readSecret: read, stop, log, hidesTexts: hidesQueries(pipeline) }
    if (rulesOf(extract.resource).reading !== 'search') return tokenText(await testToken(service, options))
    const { token, search } = await testService(service, options)
    return `${tokenText(token)}; ${searchText(search)}`
  })
}

async function checkCatalog(pipeline: Pipeline, io: Io): Promise<string | null> {
  // It is reported by the step before.
  if ((await unsetVariable(pipeline, io)) !== null) return null
  const compared = await comparedCatalog(pipeline, io)
  if (compared === null) return null
  if (compared.failure !== null) throw compared.failure
  return catalogText(compared)
}

function tokenText({ url, info }: TokenTest): string {
  if (info === null) return `the token is not tested: there is no test at ${url}`
  const details = [
    ...(info.organizationId === null ? [] : [`organization ${info.organizationId}`]),
    ...(info.tenantId === null ? [] : [`tenant ${info.tenantId}`]),
    ...(info.scopes.length === 0 ? [] : [`scopes ${info.scopes.join(', ')}`]),
  ]
  return `the token is accepted${details.length === 0 ? '' : `: ${details.join(', ')}`}`
}

/** @throws ExportError when a run would fail there: `config`, `refused` */
function searchText({ url, found }: SearchPath): string {
  if (found === 'yes') return 'the search path exists'
  if (found === 'unknown') return `the search path is not tested: a GET of ${url} does not show it`
  if (found === 'redirect') {
    throw new ExportError({
      kind: 'refused',
      what: 'The search path redirects, to a login for instance: redirects are not followed, because the token would go along',
      where: url,
      next: 'Correct service.base_url or service.search_path.',
    })
  }
  throw new ExportError({
    kind: 'config',
    what:
      found === 'no'
        ? 'The service responds with 404 at the search path: nothing is at this address'
        : 'A web page is at the search path: another server answers there',
    where: url,
    next: 'Correct service.base_url (its prefix segment is a part of it: https://api.example.com/firework) or service.search_path.',
  })
}
