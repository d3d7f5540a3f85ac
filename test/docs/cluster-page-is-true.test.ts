import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { scratchFolder } from '../support/at-the-end.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { PASSWORD } from '../support/postgres/server.mjs'
import { jsonLines } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { firing, unknownTo } from './alert-rules.ts'
import { blocksOf, blockUnder, commandFolder, textOf } from './page.ts'
import { deployment } from './shapes.ts'

const PAGE = 'docs/cluster.md'
const execute = promisify(execFile)

async function world(...files: string[]) {
  const sandbox = await startSandbox({ records: 30 })
  const folder = scratchFolder()
  mkdirSync(join(folder, 'pipelines'))
  for (const name of ['acme', ...files]) {
    const service = { base_url: sandbox.baseUrl, requests_per_second: 100 }
    const pipeline = {
      name,
      service,
      extract: { domains: ['scatterholt.com'] },
      load: { path: `out/${name}` },
    }
    for (const subfolder of ['.', 'pipelines'])
      writeFileSync(join(folder, subfolder, `${name}.yaml`), JSON.stringify(pipeline))
  }
  const env = {
    PATH: `${commandFolder(folder)}:${process.env.PATH}`,
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_QUEUE_URL: await newDatabase(),
    PGPASSWORD: PASSWORD,
    SPILLWAY_TOKEN: sandbox.token,
  }
  const start = (command: string) => {
    const child = spawn('/bin/sh', ['-c', `exec ${command}`], { cwd: folder, env, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const carryOut = async (command: string) =>
    (await execute('/bin/sh', ['-c', command], { cwd: folder, env })).stdout
  return { folder, start, carryOut }
}

it('five minutes, two terminals: its commands do what it says', async () => {
  const commands = blocksOf(PAGE)
    .filter(({ language, under }) => language === 'sh' && under.includes('Five minutes, two terminals'))
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => line.startsWith('spillway '))
    .map((line) => line.replace(/ +#.*/, ''))
  expect(commands).toEqual(['spillway worker', 'spillway submit acme.yaml --wait'])
  // The containers below carry out the same commands.
  if (!THOROUGH) return
  const { start, carryOut } = await world()
  const worker = start(commands[0]!)
  expect(await carryOut(commands[1]!)).toMatch(/30/)
  worker.kill('SIGTERM')
  expect(await once(worker, 'exit')).toEqual([0, null])
})

it('the commands of the containers work', async () => {
  const [, workers] = parseAllDocuments(textOf('docs/schedules/workers.yaml'))
  const { command, args } = deployment.parse(workers?.toJS()).spec.template.spec.containers[0]!
  const { folder, start, carryOut } = await world('globex')
  const here = (text: string) => text.replaceAll(/ (\/pipelines\S*)/g, ` '${folder}'$1`).trim()
  const worker = start(here([...command, ...args, '--metrics-file', 'worker.prom'].join(' ')))
  const summaries = await carryOut(here(blockUnder(PAGE, 'Kubernetes', 'sh')))
  const lines = jsonLines(summaries)
  expect(lines.map(({ pipeline, status, rows }) => [pipeline, status, rows]).sort()).toEqual([
    ['acme', 'complete', 30],
    ['globex', 'complete', 30],
  ])
  worker.kill('SIGTERM')
  expect(await once(worker, 'exit')).toEqual([0, null])
  const metrics = readFileSync(join(folder, 'worker.prom'), 'utf8')
  expect([unknownTo(metrics), firing(metrics)]).toEqual([[], []])
})

it('without any queue: the container of each index runs the pipelines of one organization', async () => {
  const { carryOut } = await world()
  const script = blockUnder(PAGE, 'Without any queue', 'sh').replaceAll('/pipelines/$1/*.yaml', '$1.yaml')
  expect(await carryOut(`export JOB_COMPLETION_INDEX=0; ${script}`)).toContain('"status":"complete"')
})
