import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { pendingOf } from '../../src/cluster/submitted-pipelines.ts'
import { exits, jsonLines, start } from '../support/run-cli.ts'
import { describeOnEach, undisturbed, world } from './support/world.ts'

describeOnEach((backend) => {
  it('rows, bytes and searches are those of run, as are the summary and the exit code', async () => {
    const here = await world({ backend, organizations: 3 })
    const worker = here.workerHere()
    const [first, second] = await Promise.all([
      here.submit('--wait', '--json'),
      here.submit('--wait', '--json'),
    ])
    expect(first.code, first.stderr + worker.log()).toBe(0)
    expect(second.code, second.stderr).toBe(0)
    for (const { pipeline, status, rows, requests } of jsonLines(first.stdout))
      expect([status, rows, requests]).toEqual(['complete', 120, here.searches(pipeline).length])
    for (const organization of here.organizations) {
      await here.expectRows(organization)
      expect(existsSync(join(here.folder, organization, '_SUCCESS'))).toBe(true)
    }
    const searches = here.searches('org-0').length
    const alone = await undisturbed(here, 'org-0')
    expect(await here.digests('org-0')).toEqual(alone.shards)
    expect(searches).toBe(alone.searches)
    const again = await here.submit('--wait', '--json')
    expect(jsonLines(again.stdout)).toMatchObject([0, 1, 2].map(() => ({ status: 'complete', requests: 0 })))
  })

  it('pipelines of an organization run in the order of submission, the second time too', async () => {
    const here = await world({ backend, organizations: 3, parts: { service: { organization: 'shared' } } })
    const files = here.organizations.map(here.file)
    const pending = () =>
      here.withQueue(async (queue) =>
        (await pendingOf(queue, 'shared', () => {})).map(({ submitted }) => submitted.name),
      )
    await exits(0, here.cli('submit', ...files))
    expect(await pending()).toEqual(here.organizations)
    const worker = here.worker()
    const { stdout } = await exits(0, here.cli('submit', ...files, '--wait'))
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^pipeline +verdict +rows/),
      ...here.organizations.map((name) => expect.stringMatching(`^${name} +complete +120`)),
    ])
    worker.kill('SIGTERM')
    await worker.ended
    expect(await pending()).toEqual([])
    await exits(0, here.cli('submit', ...files.toReversed()))
    expect(await pending()).toEqual(here.organizations.toReversed())
  })

  it('submit --wait says who has left a job, and why; a worker has metrics of its runs', async () => {
    const here = await world({ backend })
    const elsewhere = join(here.folder, 'elsewhere')
    mkdirSync(elsewhere)
    const first = start(['worker'], elsewhere, here.env)
    const submitted = start(['submit', 'org-0.yaml', '--wait'], here.folder, here.env)
    await submitted.until((stderr) => stderr.includes('has left it to others'))
    first.child.kill('SIGTERM')
    await first.result
    const metrics = join(here.folder, 'worker.prom')
    const second = start(['worker', '--metrics-file', metrics], here.folder, here.env)
    const { code, stderr } = await submitted.result
    expect(code, stderr).toBe(0)
    expect(stderr).toContain(`${join(elsewhere, 'org-0.yaml')}: it is not there`)
    second.child.kill('SIGTERM')
    await second.result
    expect(readFileSync(metrics, 'utf8')).toContain('spillway_last_run_success{pipeline="org-0"} 1')
  })

  it('Node prints no warning, whatever the number of organizations', async () => {
    const warnings: string[] = []
    const warned = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const here = await world({ backend })
    await here.withQueue(async (queue) => {
      await Promise.all(Array.from({ length: 20 }, (_, n) => queue.pipelinesOf(`org-${n}`).getJob('none')))
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([])
  })
})
