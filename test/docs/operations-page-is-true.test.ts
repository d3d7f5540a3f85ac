import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { blocksOf, blockUnder, commandFolder, ROOT } from './page.ts'
import { cronJob, workflowShape } from './shapes.ts'

const PAGE = 'docs/operations.md'
const execute = promisify(execFile)
const has = (command: string) => spawnSync(command, ['--version']).error === undefined

type Ran = { readonly code: number; readonly out: string }

async function run(
  command: string,
  args: readonly string[],
  env: Record<string, string>,
  cwd?: string,
): Promise<Ran> {
  const options = { env: { PATH: '', ...env }, ...(cwd === undefined ? {} : { cwd }) }
  try {
    const { stdout, stderr } = await execute(command, args, options)
    return { code: 0, out: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout + stderr }
  }
}

/** The pipeline of the page in a folder of its own, against a sandbox. */
async function world() {
  const sandbox = await startSandbox({ records: 20 })
  const folder = scratchFolder()
  const [config] = kubernetes() as [{ data: Record<string, string> }]
  const text = config.data['acme.yaml']!.replace('service:', 'service:\n  requests_per_second: 100')
  writeFileSync(join(folder, 'acme.yaml'), text)
  return { folder, env: { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token } }
}

const here = (text: string, folder: string) =>
  text.replaceAll('/etc/spillway/acme.yaml', join(folder, 'acme.yaml'))

describe('systemd', () => {
  const units = blocksOf(PAGE).filter(({ language }) => language === 'ini')
  const named = Object.fromEntries(units.map(({ text }) => [/# .*\/(\S+)\n/.exec(text)?.[1] ?? '', text]))

  it('has a service, and a timer for it', () => {
    expect(Object.keys(named)).toEqual(['spillway-acme.service', 'spillway-acme.timer'])
  })

  it.skipIf(!has('systemd-analyze'))('has units that systemd-analyze accepts', async () => {
    const folder = scratchFolder()
    const bin = commandFolder(folder, 'exit 0')
    for (const [name, text] of Object.entries(named)) {
      writeFileSync(join(folder, name), text.replace('/usr/local/bin', bin))
    }
    const args = ['verify', '--man=no', ...Object.keys(named).map((name) => join(folder, name))]
    const { code, out } = await run('systemd-analyze', args, { PATH: process.env.PATH ?? '' })
    // It checks units of the machine as well.
    expect({ code, ours: out.split('\n').filter((line) => line.includes('spillway')) }).toEqual({
      code: 0,
      ours: [],
    })
    const broken = join(folder, 'broken.service')
    writeFileSync(broken, named['spillway-acme.service']!.replace('Restart=on-failure', 'Restart=perhaps'))
    expect(
      (await run('systemd-analyze', ['verify', '--man=no', broken], { PATH: process.env.PATH ?? '' })).out,
    ).toContain('broken.service')
  })
})

describe('cron', () => {
  it.each([
    [0, ''],
    [1, 'spillway run acme.yaml: exit 1, see run.log\n'],
    [4, ''],
  ])('exit %i prints "%s"', async (exit, out) => {
    const folder = scratchFolder()
    const bin = commandFolder(folder, `exit ${exit}`)
    const command = blockUnder(PAGE, 'cron', 'crontab')
      .replace(/^(?:\S+ ){5}/, '')
      .replace('/srv/spillway', folder)
    expect(command).not.toMatch(/%|\n./)
    expect((await run('/bin/sh', ['-c', command], { PATH: `${bin}:/usr/bin:/bin` })).out).toBe(out)
  })
})

describe('Kubernetes', () => {
  it('the objects have the fields that the API knows, and refer to each other', () => {
    const [config, claim, job] = kubernetes() as [{ metadata: object }, { metadata: object }, unknown]
    const { spec } = cronJob.parse(job)
    const pod = spec.jobTemplate.spec.template.spec
    const [container] = pod.containers
    expect(spec.jobTemplate.spec.podFailurePolicy.rules[0]?.onExitCodes?.containerName).toBe(container?.name)
    expect(pod.volumes.map(({ name }) => name).sort()).toEqual(
      container?.volumeMounts.map(({ name }) => name).sort(),
    )
    expect([config.metadata, claim.metadata]).toEqual([{ name: 'spillway-acme' }, { name: 'spillway-acme' }])
  })

  it.each([0, 1, 2, 3, 4, 5])('its script maps exit %i as the page says', async (exit) => {
    const bin = commandFolder(scratchFolder(), `exit ${exit}`)
    const { code } = await run('/bin/sh', ['-c', script()], { PATH: `${bin}:/usr/bin:/bin` })
    expect(code).toBe(exit === 4 ? 0 : exit)
  })

  it('SIGTERM reaches the command, whose exit code is that of the script', async () => {
    const bin = commandFolder(
      scratchFolder(),
      `trap 'echo told; exit 143' TERM; kill -TERM "$PPID"; while :; do sleep 0.05; done`,
    )
    expect(await run('/bin/sh', ['-c', script()], { PATH: `${bin}:/usr/bin:/bin` })).toEqual({
      code: 143,
      out: 'told\n',
    })
  })

  it('runs the pipeline of the ConfigMap', async () => {
    const { folder, env } = await world()
    const PATH = `${commandFolder(folder)}:/usr/bin:/bin`
    const { code, out } = await run('/bin/sh', ['-c', here(script(), folder)], { ...env, PATH }, folder)
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('"status":"complete"') })
  })
})

describe('GitHub Actions', () => {
  const workflow = workflowShape.parse(parse(blockUnder(PAGE, 'GitHub Actions', 'yaml')))
  const step = workflow.jobs.export.steps.find(({ run }) => run !== undefined)

  it.each([
    [0, 0, ''],
    [1, 1, ''],
    [2, 2, '::error::'],
    [3, 3, '::error::'],
    [4, 0, '::notice::Budget or quota used up'],
    [5, 5, '::notice::Another run'],
  ])('its step turns exit %i into exit %i', async (exit, becomes, says) => {
    const folder = scratchFolder()
    const bin = commandFolder(folder, `echo x >> ${folder}/calls; exit ${exit}`)
    const env = { PATH: `${bin}:/usr/bin:/bin`, SOON: '0' }
    const { code, out } = await run('/bin/sh', ['-e', '-c', step?.run ?? ''], env, folder)
    expect({ code, out }).toEqual({ code: becomes, out: expect.stringContaining(says) })
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toHaveLength(exit === 5 ? 8 : 2)
  })
})

const hasPython = has('python3')
describe.skipIf(!hasPython)('in Python', () => {
  const AIRFLOW = {
    'airflow/__init__.py': '',
    'airflow/exceptions.py':
      'class AirflowException(Exception): pass\nclass AirflowFailException(AirflowException): pass\n',
    'airflow/decorators.py': `
def dag(*, schedule, start_date, catchup, max_active_runs):
    return lambda function: function
def task(*, retries, retry_delay, retry_exponential_backoff, max_retry_delay):
    def decorate(function):
        def call():
            print("returned", function())
        return call
    return decorate
`,
  }
  const DAGSTER = {
    'dagster.py': `
class Failure(Exception):
    def __init__(self, description=None, metadata=None, allow_retries=None): super().__init__(description)
class RetryRequested(Exception):
    def __init__(self, max_retries=1, seconds_to_wait=None): super().__init__(seconds_to_wait)
class MaterializeResult:
    def __init__(self, *, metadata): self.metadata = metadata
def asset(function): return function
def define_asset_job(name, selection): return name
class ScheduleDefinition:
    def __init__(self, *, job, cron_schedule, execution_timezone): pass
class Definitions:
    def __init__(self, *, assets, schedules): print("returned", assets[0]().metadata)
`,
  }

  const schedulers = [
    [
      'Airflow',
      AIRFLOW,
      ['', 'AirflowException', 'AirflowFailException', 'AirflowFailException', '', 'AirflowException'],
    ],
    ['Dagster', DAGSTER, ['', 'RetryRequested: 3600', 'Failure', 'Failure', '', 'RetryRequested: 300']],
  ] as const

  async function program(name: string, stubs: Readonly<Record<string, string>>, folder: string, env: object) {
    for (const [path, text] of Object.entries(stubs)) {
      mkdirSync(join(folder, path, '..'), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    writeFileSync(join(folder, 'program.py'), here(blockUnder(PAGE, name, 'python'), folder))
    return run(
      'python3',
      [join(folder, 'program.py')],
      { ...env, PYTHONPATH: folder } as Record<string, string>,
      folder,
    )
  }

  it.each(schedulers)('%s: each exit code means what the page says', async (name, stubs, meanings) => {
    const summary = '{"status":"budget","rows":1,"shards":1,"requests":1,"searches_remaining":null}'
    const ends = await Promise.all(
      meanings.map(async (_, exit) => {
        const folder = scratchFolder()
        const bin = commandFolder(folder, `echo '${summary}'; exit ${exit}`)
        return program(name, stubs, folder, { PATH: `${bin}:${process.env.PATH}` })
      }),
    )
    for (const [exit, meaning] of meanings.entries()) {
      const { code, out } = ends[exit]!
      expect({ exit, code, out }).toMatchObject({
        code: meaning === '' ? 0 : 1,
        out: expect.stringContaining(meaning),
      })
    }
  })

  it.each(some(schedulers, 1))('%s: runs the built command', async (name, stubs) => {
    const { folder, env } = await world()
    const PATH = `${commandFolder(folder)}:${process.env.PATH}`
    const { code, out } = await program(name, stubs, folder, { ...env, PATH })
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringMatching(/returned .*'status': 'complete'/),
    })
  })
})

it('the pipeline of the page can be read', async () => {
  const { folder, env } = await world()
  await expect(readPipeline('acme.yaml', { env, cwd: folder })).resolves.toMatchObject({ name: 'acme' })
})

it('the Dockerfile copies files that exist, runs as an unprivileged user, and starts the command', () => {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  const { bin, engines, version, description, license } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  )
  expect(copied.filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
  expect(text).toContain(`/opt/spillway/${bin.spillway} /usr/local/bin/spillway`)
  expect(engines.node).toBe('>=20.19')
  // One release of Node for both stages.
  expect(text).toMatch(/^ARG NODE_IMAGE=node:22\.\d+\.\d+-bookworm-slim$/m)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the Dockerfile's own
  expect(text.match(/^FROM \S+/gm)).toEqual(['FROM ${NODE_IMAGE}', 'FROM ${NODE_IMAGE}'])
  const labels = new Map(
    [...text.matchAll(/org\.opencontainers\.image\.(\w+)="(.*)"/g)].map(([, k, v]) => [k, v]),
  )
  expect(Object.fromEntries(labels)).toEqual({ title: 'Spillway', description, version, licenses: license })
  expect(text).toContain('/src/LICENSE')
  expect(text.slice(text.lastIndexOf('FROM'))).toMatch(/\nUSER node\n(?:[#H ].*\n)+ENTRYPOINT \["spillway"\]/)
})

function kubernetes(): readonly unknown[] {
  return parseAllDocuments(blockUnder(PAGE, 'Kubernetes', 'yaml')).map((document) => document.toJS())
}

function script(): string {
  const { spec } = cronJob.parse(kubernetes()[2])
  return spec.jobTemplate.spec.template.spec.containers[0]!.args[0]!
}
