import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { threeMonths, trial } from './trial.ts'

it('status, plan, verify and check of several files: a line each, and the gravest exit code', async () => {
  const { cli, write } = await trial()
  for (const name of ['done', 'fresh'])
    await write(threeMonths({ name, load: { path: name } }), `${name}.yaml`)
  expect((await cli('run', 'done.yaml')).code).toBe(0)
  for (const [name, exit, first, second] of [
    ['status', 0, '3 of 3 partitions done', '0 of 3 partitions done'],
    ['plan', 0, '3 partitions: 3 done', '3 partitions: 0 done'],
    ['verify', 2, 'the files are intact', 'Nothing was exported yet'],
    ['check', 0, 'ok', 'ok'],
  ] as const) {
    const { code, stdout } = await cli(name, 'done.yaml', 'fresh.yaml')
    const [titles = '', ...lines] = stdout.trimEnd().split('\n')
    expect(titles).toMatch(/^pipeline +verdict +rows +run ago +window ago/)
    expect([name, code, lines.length]).toEqual([name, exit, 2])
    expect(lines[0]).toMatch(new RegExp(`^done +${first}.* +\\d+ +[\\d.]+ s +[\\d,]+ d`))
    expect(lines[1]).toMatch(new RegExp(`^fresh(?:\\.yaml)? +${second}`))
  }
  const missing = await exits(2, cli('status', 'done.yaml', 'nowhere.yaml', '--json'))
  expect(missing.stdout).toContain('"file":"nowhere.yaml","error":"The pipeline file does not exist')
})
