import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { runCli } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { blocksOf, commandFolder, ROOT } from './page.ts'
import { cronJob } from './shapes.ts'

const execute = promisify(execFile)
const has = (command: string) => spawnSync(command, ['--version']).error === undefined

type Ran = { readonly code: number; readonly out: string }

/** Runs a script with the environment of cron, and nothing else. */
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

/** A folder with a pipeline file and its variables, whose name has to be quoted everywhere. */
async function world(text = PIPELINE) {
  const sandbox = await startSandbox({ records: 20 })
  const folder = join(scratchFolder(), 'it is 100% mine')
  mkdirSync(folder)
  writeFileSync(join(folder, 'acme.yaml'), text)
  const variables = {
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    SPILLWAY_MASK_KEY: MASK_KEY,
  }
  const lines = Object.entries(variables).map(([name, value]) => `${name}='${value}'\n`)
  writeFileSync(join(folder, 'acme.env'), lines.join(''))
  return { folder, variables }
}

/** What the command prints, where the variables of the service are not set. */
async function scheduleFor(scheduler: string, folder: string): Promise<string> {
  // What cron starts is the command that printed the line.
  const carry = scheduler === 'cron' ? runCli : carryOut
  const { code, stdout, stderr } = await carry({
    args: ['init', 'acme.yaml', '--for', scheduler],
    cwd: folder,
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

it('the variables of secret queries and of the catalog are named', async () => {
  const searched = PIPELINE.replace('domains:', 'queries: [{ type: secret, secret_env: LEAKED }]\n  domains:')
  const catalog =
    'load: { table_formats: [iceberg], catalog: { uri: "http://localhost", namespace: a, token_env: LAKE } }\n'
  const { folder } = await world(`${searched}${catalog}`)
  const text = await scheduleFor('cron', folder)
  for (const name of ['LEAKED', 'LAKE']) expect(text).toContain(`${name}='…'`)
})

describe('cron', () => {
  const jobOf = (text: string) => {
    const line = text.trimEnd().split('\n').at(-1)!
    expect(line).toMatch(/^15 2 \* \* \* /)
    // In a crontab a bare percent sign is a line break.
    expect(line.replaceAll('\\%', '')).not.toContain('%')
    return line.replace(/^(?:\S+ ){5}/, '').replaceAll('\\%', '%')
  }

  it('names the variables of the file, checks the pipeline and exports it in the environment of cron', async () => {
    const { folder, variables } = await world()
    const text = await scheduleFor('cron', folder)
    for (const name of Object.keys(variables)) expect(text).toContain(`${name}='…'`)
    const check = /^# +(env -i .*)$/m.exec(text)?.[1] ?? ''
    expect(await asCron(check)).toMatchObject({
      code: 0,
      out: expect.stringContaining('the token is accepted'),
    })
    expect(await asCron(jobOf(text))).toEqual({ code: 0, out: '' })
    expect(existsSync(join(folder, 'output/acme/_SUCCESS'))).toBe(true)
    const log = join(folder, 'acme.log')
    expect(readFileSync(log, 'utf8')).toContain('"status":"complete"')
    expect(statSync(log).mode & 0o777).toBe(0o600)
  })

  it('prints nothing at a used-up budget, and the reason of what needs a person', async () => {
    const { folder } = await world(
      PIPELINE.replace('extract:\n', 'extract:\n  max_requests: 2\n  page_size: 2\n'),
    )
    const job = jobOf(await scheduleFor('cron', folder))
    expect(await asCron(job)).toEqual({ code: 0, out: '' })
    writeFileSync(join(folder, 'acme.env'), 'SPILLWAY_TOKEN=wrong\n', { flag: 'a' })
    const { out } = await asCron(job)
    expect(out).toContain(`spillway run ${join(folder, 'acme.yaml')}: exit 3`)
    expect(out).toContain('domain.scatterholt.com')
  })
})

describe('systemd', () => {
  it.skipIf(!has('systemd-analyze'))('has units that systemd-analyze accepts', async () => {
    const { folder } = await world()
    const [, ...units] = (await scheduleFor('systemd', folder)).split(/^# \/etc\/systemd\/system\/(\S+)\n/m)
    expect([units[0], units[2]]).toEqual(['spillway-acme.service', 'spillway-acme.timer'])
    const written = scratchFolder()
    for (const i of [0, 2]) writeFileSync(join(written, units[i]!), units[i + 1]!)
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

  it('has every exit code that is no failure, and lets nobody else read what it writes', async () => {
    const { folder } = await world()
    const text = await scheduleFor('systemd', folder)
    expect(text).toContain('\nSuccessExitStatus=4 143\n')
    expect(text).toContain('\nRestartPreventExitStatus=1 2 3\n')
    expect(text).toContain('\nUMask=0077\n')
    expect(text).toContain(`\nWorkingDirectory=${folder.replace('%', '%%')}\n`)
  })
})

describe('Kubernetes', () => {
  let objects: readonly unknown[]
  let folder: string
  let variables: Readonly<Record<string, string>>
  beforeAll(async () => {
    ;({ folder, variables } = await world())
    objects = parseAllDocuments(await scheduleFor('kubernetes', folder)).flatMap(
      (document) => document.toJS() ?? [],
    )
  })
  const pod = () => cronJob.parse(objects.at(-1)).spec.jobTemplate.spec.template.spec
  const script = () => pod().containers[0]!.args[0]!

  it('the objects have the fields that the API knows, and refer to each other', () => {
    const { spec } = cronJob.parse(objects.at(-1))
    const [container] = pod().containers
    expect(spec.jobTemplate.spec.podFailurePolicy.rules[0]?.onExitCodes?.containerName).toBe(container?.name)
    expect(pod().volumes.map(({ name }) => name)).toEqual(container?.volumeMounts.map(({ name }) => name))
    expect(objects).toMatchObject([
      { kind: 'ConfigMap', metadata: { name: 'spillway-acme' }, data: { 'acme.yaml': PIPELINE } },
      { kind: 'PersistentVolumeClaim', metadata: { name: 'spillway-acme' } },
      { kind: 'CronJob', metadata: { name: 'spillway-acme' } },
    ])
  })

  it.each([0, 1, 2, 3, 4, 5])(
    'exit %i of the command is that of the pod, and 4 is no failure',
    async (exit) => {
      const bin = commandFolder(scratchFolder(), `exit ${exit}`)
      const { code } = await asCron(script(), { PATH: `${bin}:/usr/bin:/bin` })
      expect(code).toBe(exit === 4 ? 0 : exit)
    },
  )

  it('SIGTERM reaches the command, whose exit code is that of the script', async () => {
    const told = `trap 'echo told; exit 143' TERM; kill -TERM "$PPID"; while :; do sleep 0.05; done`
    const bin = commandFolder(scratchFolder(), told)
    expect(await asCron(script(), { PATH: `${bin}:/usr/bin:/bin` })).toEqual({ code: 143, out: 'told\n' })
  })

  it('runs the pipeline of the ConfigMap', async () => {
    const here = `cd '${folder}'; ${script().replaceAll('/etc/spillway/acme.yaml', 'acme.yaml')}`
    const PATH = `${commandFolder(scratchFolder())}:/usr/bin:/bin`
    const { code, out } = await asCron(here, { ...variables, PATH })
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('"status":"complete"') })
  })

  it.each([
    ['by extends', `extends: base.yaml\n${PIPELINE}`],
    [
      'in braces',
      PIPELINE.replace(/extract:[\s\S]*?(?=transform)/, 'extract: { domains_file: domains.txt }\n'),
    ],
  ])(
    'a file that names others %s is refused, with the command that makes one file of them',
    async (_, text) => {
      const { folder } = await world(text)
      writeFileSync(join(folder, 'base.yaml'), 'load: { format: csv }\n')
      writeFileSync(join(folder, 'domains.txt'), 'scatterholt.com\n')
      const { code, stdout, stderr } = await carryOut({
        args: ['init', 'acme.yaml', '--for', 'kubernetes'],
        cwd: folder,
      })
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain('--resolved')
    },
  )
})

it('a schedule of a file that is not there, or is wrong, is exit 2', async () => {
  const { folder } = await world('name: [acme]\n')
  for (const file of ['acme.yaml', 'nothing.yaml']) {
    const { code, stdout } = await carryOut({ args: ['init', file, '--for', 'cron'], cwd: folder })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  }
})

it('the page shows every scheduler that the command knows', () => {
  const [block] = blocksOf('docs/operations.md').filter(({ language }) => language === 'sh')
  for (const name of ['cron', 'systemd', 'kubernetes']) expect(block?.text).toContain(name)
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
  // `init` and `demo` begin with files of it.
  for (const name of ['LICENSE', 'pipelines']) expect(text).toContain(`/src/${name}`)
  expect(text.slice(text.lastIndexOf('FROM'))).toMatch(/\nUSER node\n(?:[#H ].*\n)+ENTRYPOINT \["spillway"\]/)
})
