import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openQueue, type Queue } from '../../src/cluster/index.ts'
import { systemClock } from '../../src/core/index.ts'
import { start } from '../cli/spillway.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'
import { until, type World, world } from './support/world.ts'

const backend = 'postgres'

async function withQueue(here: World, use: (queue: Queue) => Promise<void>): Promise<void> {
  const url = (here.env.SPILLWAY_QUEUE_URL ?? '').replace('postgres@', `postgres:${PASSWORD}@`)
  const queue = await openQueue(url, { clock: systemClock, password: null, warn: () => {} })
  await use(queue)
  await queue.close()
}

/** Everything that the queue holds. */
async function held(here: World): Promise<string> {
  const url = here.env.SPILLWAY_QUEUE_URL ?? ''
  const tables = await pgRows(
    url,
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'bullmq'`,
  )
  let text = ''
  for (const { name } of tables) text += JSON.stringify(await pgRows(url, `SELECT * FROM bullmq."${name}"`))
  return text
}

// Whoever can write to the queue could otherwise read every file that a worker can.
const FILES: readonly (readonly [name: string, text: string])[] = [
  [
    'values',
    'name: canary-one\nservice: { token_env: canary-two }\nload: { path: x, format: canary-three }\n',
  ],
  ['keys', 'canary-one: 1\nextract: { canary-two: 1, windows: { every: canary-three } }\n'],
  ['duplicates', 'canary-one: 1\ncanary-one: 2\ncanary-two: { canary-three: 1, canary-three: 2 }\n'],
  ['bases', 'name: x\nextends: [canary-one, ./canary-two, /etc/canary-three]\n'],
]

it('errors of a file that an entry names give lines, and never quote it', async () => {
  const here = await world({ backend, organizations: 2 * FILES.length })
  await here.submit()
  await withQueue(here, async (queue) => {
    for (const [n, organization] of here.organizations.entries()) {
      const [name, text] = FILES[n >> 1]!
      const file = join(here.folder, `${name}.of-this-machine`)
      writeFileSync(file, text)
      const [entry] = await queue.pipelinesOf(organization).getJobs(['waiting'])
      const { settings, ...data } = entry!.data
      // Read as a pipeline file, or not at all: the lines of what is missing are in the entry.
      const service = { ...settings.service, token_env: 'OF_NOBODY' }
      const changed =
        n % 2 === 0 ? { hidden: true, settings } : { locations: {}, settings: { ...settings, service } }
      await entry!.updateData({ ...data, file, ...changed })
    }
  })
  start(['worker'], here.folder, here.env)
  const failed = `SELECT name, failed_reason FROM bullmq.job WHERE queue = 'organizations' AND state = 'failed' ORDER BY name`
  const jobs = () => pgRows(here.env.SPILLWAY_QUEUE_URL ?? '', failed)
  await until('all have failed', async () => (await jobs()).length === here.organizations.length)
  for (const [n, { failed_reason: reason }] of (await jobs()).entries()) {
    expect(reason).toMatch(
      n % 2 === 0 ? /cannot be read: \d+ problems? .*Correct line \d+/ : /service\.token_env: .*OF_NOBODY/s,
    )
  }
  expect((await held(here)).match(/canary-\w+/g)).toBe(null)
})

it('a job or a pipeline of a newer version is left to a newer worker', async () => {
  const here = await world({ backend, organizations: 3 })
  await here.submit()
  const stored: unknown[] = []
  await withQueue(here, async (queue) => {
    const jobs = await queue.organizations.getJobs(['waiting'])
    const job = jobs.find(({ name }) => name === 'org-0')!
    const [entry] = await queue.pipelinesOf('org-1').getJobs(['waiting'])
    for (const each of [job, entry!]) {
      stored.push(each.data)
      await each.updateData({ ...each.data, version: 2 })
    }
  })
  const worker = here.workerHere()
  await until('the messages are logged', () =>
    ['org-0', 'org-1'].every((name) => worker.log().includes(`${name} was submitted by another version`)),
  )
  expect((await here.cli('submit', 'org-2.yaml', '--wait')).code).toBe(0)
  const states = `SELECT name, state FROM bullmq.job WHERE queue = 'organizations' ORDER BY name`
  await until('both are left', async () => {
    const jobs = await pgRows(here.env.SPILLWAY_QUEUE_URL ?? '', states)
    return jobs.slice(0, 2).every(({ state }) => state === 'delayed')
  })
  expect(here.searches('org-0').concat(here.searches('org-1'))).toEqual([])
  // What a newer worker finds is whole.
  await withQueue(here, async (queue) => {
    const [job] = (await queue.organizations.getJobs(['delayed'])).filter(({ name }) => name === 'org-0')
    const [entry] = await queue.pipelinesOf('org-1').getJobs(['waiting'])
    expect([job, entry].map((each) => each?.data)).toEqual(
      stored.map((data) => ({ ...(data as object), version: 2 })),
    )
    for (const [n, each] of [job!, entry!].entries()) await each.updateData(stored[n])
  })
  expect((await here.submit('--wait')).code, worker.log()).toBe(0)
})
