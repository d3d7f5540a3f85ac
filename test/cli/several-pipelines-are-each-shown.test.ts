import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { exits } from '../support/run-cli.ts'
import { threeMonths, trial } from './trial.ts'

it('status, plan, verify and check of several files: each in full, and the gravest exit code', async () => {
  const { cli, write } = await trial()
  for (const name of ['done', 'fresh'])
    await write(threeMonths({ name, load: { path: name } }), `${name}.yaml`)
  expect((await cli('run', 'done.yaml')).code).toBe(0)
  for (const [name, exit, first, second] of [
    ['status', 0, 'done: complete: all 3 partitions', 'fresh: INCOMPLETE: nothing is exported yet'],
    ['plan', 0, 'done: 3 partitions: 3 done', 'fresh: 3 partitions: 0 done'],
    ['verify', 2, 'done: the files are intact', ''],
    ['check', 0, 'ok  file         done.yaml: done', 'ok  file         fresh.yaml: fresh'],
  ] as const) {
    const { code, stdout } = await cli(name, 'done.yaml', 'fresh.yaml')
    const alone = await cli(name, 'done.yaml')
    expect([name, code]).toEqual([name, exit])
    expect(stdout.startsWith(first) && alone.stdout.startsWith(first), stdout).toBe(true)
    expect(stdout).toContain(`\n\n${second}`)
  }
  const missing = await exits(2, cli('status', 'done.yaml', 'nowhere.yaml', '--json'))
  expect(missing.stdout).toContain(
    '{"pipeline":null,"file":"nowhere.yaml","error":{"kind":"config","what":"The pipeline file does not exist',
  )
  const { stdout } = await exits(0, cli('check', 'done.yaml', 'fresh.yaml', '--resolved'))
  expect(parseAllDocuments(stdout).map((document) => document.toJS().name)).toEqual(['done', 'fresh'])
})
