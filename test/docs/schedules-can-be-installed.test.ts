import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { startSandbox } from '../support/sandbox.ts'
import { commandFolder, ROOT } from './page.ts'
import { cronJob, deployment } from './shapes.ts'

const execute = promisify(execFile)
const has = (command: string) => spawnSync(command, ['--version']).error === undefined

type Ran = { readonly code: number; readonly out: string }

async function asCron(script: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const options = { env: { PATH: '/usr/bin:/bin', HOME: scratchFolder(), ...env } }
  try {
    const { stdout, stderr } = await execute('/bin/sh', ['-c', script], options)
    return { code: 0, out: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout + stderr }
  }
}

const PIPELINE = `name: acme
service: { base_url: "\${SPILLWAY_BASE_URL}", requests_per_second: 100 }
extract:
  domains: [scatterholt.com]
  windows: { from: 2024-01-01, until: 2024-07-01, every: month }
transform: { secret: hmac }
`
// A shell would take more than half of it for its own.
const MASK_KEY = `k$$k&#k"k;k ${'k'.repeat(32)}`

async function world(text = PIPELINE) {
  const sandbox = await startSandbox({ records: 20 })
  const folder = join(scratchFolder(), 'it is mine')
  mkdirSync(folder)
  writeFileSync(join(folder, 'acme.yaml'), text)
  const variables = {
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    SPILLWAY_MASK_KEY: MASK_KEY,
  }
  const lines = Object.entries(variables).map(([name, value]) => `${name}='${value}'\n`)
  writeFileSync(join(folder, 'acme.env'), lines.join(''))
  return { folder, variables, PATH: `${commandFolder(scratchFolder())}:/usr/bin:/bin` }
}

const textOf = (name: string): string => readFileSync(join(ROOT, 'docs/schedules', name), 'utf8')

describe('cron', () => {
  const text = textOf('crontab')
  const job = () => {
    const line = text.trimEnd().split('\n').at(-1)!
    expect(line).toMatch(/^15 2 \* \* \* /)
    // A bare percent sign is a line break there; Debian's cron refuses longer lines.
    expect(line).not.toContain('%')
    expect(line.length).toBeLessThan(900)
    return line.replace(/^(?:\S+ ){5}/, '')
  }

  it('checks the pipeline and exports it in the environment of cron', async () => {
    const { folder, PATH } = await world()
    const check = /^# +cd \/srv\/leaks && (env -i .*)$/m.exec(text)?.[1] ?? ''
    const here = check.replace(/PATH=\S+/, `PATH=${PATH}`)
    expect(await asCron(`cd '${folder}' && ${here}`)).toMatchObject({
      code: 0,
      out: expect.stringContaining('the token is accepted'),
    })
    expect(await asCron(job(), { FOLDER: folder, NAME: 'acme', PATH })).toEqual({ code: 0, out: '' })
    expect(existsSync(join(folder, 'output/acme/_SUCCESS'))).toBe(true)
    const log = join(folder, 'acme.log')
    expect(readFileSync(log, 'utf8')).toContain('"status":"complete"')
    expect(statSync(log).mode & 0o777).toBe(0o600)
  })

  it('prints nothing at a used-up budget, and the reason of what needs a person', async () => {
    const { folder, PATH } = await world(
      PIPELINE.replace('extract:\n', 'extract:\n  max_requests: 2\n  page_size: 2\n'),
    )
    const env = { FOLDER: folder, NAME: 'acme', PATH }
    expect(await asCron(job(), env)).toEqual({ code: 0, out: '' })
    writeFileSync(join(folder, 'acme.env'), 'SPILLWAY_TOKEN=wrong\n', { flag: 'a' })
    const { out } = await asCron(job(), env)
    expect(out).toContain(`spillway run ${join(folder, 'acme.yaml')}: exit 3`)
    expect(out).toContain('domain.scatterholt.com')
  })
})

describe('systemd', () => {
  it.skipIf(!has('systemd-analyze'))('has units that systemd-analyze accepts', async () => {
    const [, ...units] = textOf('systemd.units').split(/^# \/etc\/systemd\/system\/(\S+)\n/m)
    expect([units[0], units[2]]).toEqual(['spillway-acme.service', 'spillway-acme.timer'])
    const written = scratchFolder()
    const here = (text: string) => text.replace('/usr/local/bin/spillway', process.execPath)
    for (const i of [0, 2]) writeFileSync(join(written, units[i]!), here(units[i + 1]!))
    const verify = async (...names: readonly string[]) =>
      asCron(`systemd-analyze verify --man=no ${names.map((name) => `'${join(written, name)}'`).join(' ')}`, {
        PATH: process.env.PATH ?? '',
      })
    // It checks units of the machine as well.
    const { code, out } = await verify(units[0]!, units[2]!)
    expect({ code, ours: out.split('\n').filter((line) => line.includes('spillway')) }).toEqual({
      code: 0,
      ours: [],
    })
    writeFileSync(join(written, 'broken.service'), units[1]!.replace('Restart=on-failure', 'Restart=perhaps'))
    expect((await verify('broken.service')).out).toContain('broken.service')
  })

  it('has every exit code that is no failure, and lets nobody else read what it writes', () => {
    const text = textOf('systemd.units')
    expect(text).toContain('\nSuccessExitStatus=4 143\n')
    expect(text).toContain('\nRestartPreventExitStatus=1 2 3\n')
    expect(text).toContain('\nUMask=0077\n')
  })
})

describe('Kubernetes', () => {
  const objects = parseAllDocuments(textOf('kubernetes.yaml')).map((document): unknown => document.toJS())
  const pod = () => cronJob.parse(objects.at(-1)).spec.jobTemplate.spec.template.spec
  const script = () => pod().containers[0]!.args[0]!

  it('the objects have the fields that the API knows, and refer to each other', () => {
    const { spec } = cronJob.parse(objects.at(-1))
    const [container] = pod().containers
    expect(spec.jobTemplate.spec.podFailurePolicy.rules[0]?.onExitCodes?.containerName).toBe(container?.name)
    expect(pod().volumes.map(({ name }) => name)).toEqual(container?.volumeMounts.map(({ name }) => name))
    expect(objects).toMatchObject([
      { kind: 'ConfigMap', metadata: { name: 'spillway-acme' }, data: { 'acme.yaml': expect.any(String) } },
      { kind: 'PersistentVolumeClaim', metadata: { name: 'spillway-acme' } },
      { kind: 'CronJob', metadata: { name: 'spillway-acme' } },
    ])
  })

  it.each([0, 1, 4])('exit %i of the command is that of the pod, and 4 is no failure', async (exit) => {
    const bin = commandFolder(scratchFolder(), `exit ${exit}`)
    const { code } = await asCron(script(), { PATH: `${bin}:/usr/bin:/bin` })
    expect(code).toBe(exit === 4 ? 0 : exit)
  })

  it('SIGTERM reaches the command, whose exit code is that of the script', async () => {
    const told = `trap 'echo told; exit 143' TERM; kill -TERM "$PPID"; while :; do sleep 0.05; done`
    const bin = commandFolder(scratchFolder(), told)
    expect(await asCron(script(), { PATH: `${bin}:/usr/bin:/bin` })).toEqual({ code: 143, out: 'told\n' })
  })

  it('runs the pipeline of the ConfigMap', async () => {
    const { folder, variables, PATH } = await world()
    const { data } = objects[0] as { data: { 'acme.yaml': string } }
    writeFileSync(join(folder, 'acme.yaml'), data['acme.yaml'].replace('/data/acme', 'data'))
    const here = `cd '${folder}'; ${script().replaceAll('/etc/spillway/acme.yaml', 'acme.yaml')}`
    const { code, out } = await asCron(here, { ...variables, PATH })
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('"status":"complete"') })
  })
})

it('the Deployment of workers has the fields that the API knows, and a pipeline that is valid', async () => {
  const [configMap, workers] = parseAllDocuments(textOf('workers.yaml')).map((each) => each.toJS())
  const { spec } = deployment.parse(workers).spec.template
  const [container] = spec.containers
  expect(spec.volumes.map(({ name }) => name)).toEqual(container?.volumeMounts.map(({ name }) => name))
  expect(spec.volumes[0]?.configMap).toEqual(configMap.metadata)
  const { folder, variables } = await world(configMap.data['acme.yaml'])
  const pipeline = await readPipeline(join(folder, 'acme.yaml'), { env: variables, cwd: folder })
  expect([pipeline.name, pipeline.load.path]).toEqual(['acme', 's3://leaks/acme'])
})

it('the page names every file', () => {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')
  for (const name of readdirSync(join(ROOT, 'docs/schedules'))) expect(page).toContain(`(schedules/${name})`)
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
  expect(text.match(/^FROM \S+/gm)).toEqual(['FROM ${NODE_IMAGE}', 'FROM ${NODE_IMAGE}'])
  const labels = new Map(
    [...text.matchAll(/org\.opencontainers\.image\.(\w+)="(.*)"/g)].map(([, k, v]) => [k, v]),
  )
  expect(Object.fromEntries(labels)).toEqual({ title: 'Spillway', description, version, licenses: license })
  // `init` and `demo` begin with files of it.
  for (const name of ['LICENSE', 'pipelines']) expect(text).toContain(`/src/${name}`)
  expect(text.slice(text.lastIndexOf('FROM'))).toMatch(/\nUSER node\nENTRYPOINT \["spillway"\]/)
})
