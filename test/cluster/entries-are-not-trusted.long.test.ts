import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { exits, start } from '../support/run-cli.ts'
import { until, world } from './support/world.ts'

const backend = 'postgres'

// Whoever can write to the queue could otherwise read any variable of a worker, and have it sent anywhere.
it('the queue names work and carries none: a worker runs the files that it has, as they were submitted', async () => {
  const here = await world({ backend, organizations: 5 })
  const canary = join(here.folder, '..', `${basename(here.folder)}.yaml`)
  onTestFinished(() => rmSync(canary, { force: true }))
  await here.submit()
  await here.withQueue(async (queue) => {
    const change = async (organization: string, file: object, more: object = {}): Promise<void> => {
      const [entry] = await queue.pipelinesOf(organization).getJobs(['waiting'])
      expect(Object.keys(entry!.data).sort()).toEqual(
        'allowPlaintext file name submission version'.split(' '),
      )
      await entry!.updateData({ ...entry!.data, ...more, file: { ...entry!.data.file, ...file } })
    }
    // Settings of its own are not read.
    const settings = { name: 'evil', service: { base_url: 'http://127.0.0.1:1/x', token_env: 'HOME' } }
    await change('org-0', {}, { settings })
    await change('org-1', { path: 'org-4.yaml' })
    // A file that is not below the folder, whose digest is known.
    const text = readFileSync(join(here.folder, 'org-2.yaml'))
    writeFileSync(canary, text)
    await change('org-2', { path: `../${basename(canary)}` })
    await change('org-3', { path: canary })
  })
  // This one changes after it was submitted.
  here.write('org-4', { service: { retries: 1 } })
  const worker = here.workerHere()
  await until('what is left is logged', () =>
    ['org-1', 'org-2', 'org-3', 'org-4'].every((name) =>
      new RegExp(`${name}: .* it is left to other workers`).test(worker.log()),
    ),
  )
  await until('the other has ended', () => existsSync(join(here.folder, 'org-0', '_SUCCESS')))
  for (const name of ['org-1', 'org-2', 'org-3', 'org-4']) expect(here.searches(name)).toEqual([])
  // Submitted again, they are run.
  await exits(0, here.submit('--wait'))
})

it('a worker finds pipeline files below the folder that --pipelines names', async () => {
  const here = await world({ backend })
  const elsewhere = join(here.folder, 'worker')
  mkdirSync(join(elsewhere, 'mine'), { recursive: true })
  renameSync(join(here.folder, 'org-0.yaml'), join(elsewhere, 'mine', 'org-0.yaml'))
  cpSync(join(elsewhere, 'mine', 'org-0.yaml'), join(here.folder, 'org-0.yaml'))
  start(['worker', '--pipelines', 'mine'], elsewhere, here.env)
  await exits(0, here.submit('--wait'))
  expect(existsSync(join(elsewhere, 'org-0', '_SUCCESS'))).toBe(true)
})

it('a job or a pipeline of a newer version is left to a newer worker', async () => {
  const here = await world({ backend, organizations: 3 })
  await here.submit()
  const stored: unknown[] = []
  await here.withQueue(async (queue) => {
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
  await until('both are left', async () =>
    (await here.jobs()).slice(0, 2).every(({ state }) => state === 'delayed'),
  )
  expect(here.searches('org-0').concat(here.searches('org-1'))).toEqual([])
  // What a newer worker finds is whole.
  await here.withQueue(async (queue) => {
    const [job] = (await queue.organizations.getJobs(['delayed'])).filter(({ name }) => name === 'org-0')
    const [entry] = await queue.pipelinesOf('org-1').getJobs(['waiting'])
    expect([job, entry].map((each) => each?.data)).toEqual(
      stored.map((data) => ({ ...(data as object), version: 2 })),
    )
    for (const [n, each] of [job!, entry!].entries()) await each.updateData(stored[n])
  })
  expect((await here.submit('--wait')).code, worker.log()).toBe(0)
})
