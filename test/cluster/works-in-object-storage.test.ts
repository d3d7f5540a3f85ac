import { expect, it, onTestFinished } from 'vitest'
import { SAME } from '../e2e/support/rows.ts'
import { BUCKET, mirror, namesIn, startBucket } from '../support/bucket.ts'
import { digests, ofOneMachine, until, world } from './support/world.ts'

async function bucket() {
  const started = await startBucket()
  onTestFinished(() => started.double.close())
  return started
}

const LOAD = { load: { path: `s3://${BUCKET}/leaks`, partition_by: ['query', 'window'], shard_rows: 25 } }

it('workers die, and the store fails for a while: the rows and bytes are those of one machine', {
  timeout: 180_000,
}, async () => {
  const { double, env } = await bucket()
  const here = await world(LOAD, { latencyMs: 60 }, { env })
  const victim = await here.worker()
  await here.submit()
  await until('it is at work', () => here.searches().length >= 20)
  double.cues.fail({ operation: ['PutObject', 'CopyObject'] }, { status: 503, code: 'SlowDown', times: 12 })
  await here.worker()
  await until('more has come', () => here.searches().length >= 40)
  victim.kill('SIGKILL')
  const { code, stderr, summary } = await here.submitAndWait()
  expect(code, stderr).toBe(0)
  expect(summary.rows).toBe(1200)
  const searches = here.searches().length
  await mirror(double, 'leaks', here.output)
  expect(await here.difference()).toEqual(SAME)
  const alone = await ofOneMachine(here)
  expect(await digests(here.output)).toEqual(alone.shards)
  expect(searches - alone.searches).toBeLessThanOrEqual(6)
  expect((await here.cli('verify', 'pipeline.yaml')).code).toBe(0)
  expect(namesIn(double, 'leaks/_state/open')).toEqual([])
})
