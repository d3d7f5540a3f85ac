import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { accessTo, sandboxWith, spillway, writePipeline } from './spillway.ts'

it('status, plan, verify and check of several files: a line each, and the gravest exit code', async () => {
  const env = accessTo(await sandboxWith())
  const folder = scratchFolder()
  const done = await writePipeline(folder, { name: 'done' })
  const fresh = await writePipeline(folder, { name: 'fresh' })
  expect((await spillway(['run', done], folder, env)).code).toBe(0)
  for (const [name, exit, first, second] of [
    ['status', 0, '3 of 3 partitions done', '0 of 3 partitions done'],
    ['plan', 0, '3 partitions: 3 done', '3 partitions: 0 done'],
    ['verify', 2, 'the files are intact', 'Nothing was exported yet'],
    ['check', 0, 'ok', 'ok'],
  ] as const) {
    const { code, stdout } = await spillway([name, done, fresh], folder, env)
    const [titles = '', ...lines] = stdout.trimEnd().split('\n')
    expect(titles).toMatch(/^pipeline +verdict +rows +run ago +window ago/)
    expect([name, code, lines.length]).toEqual([name, exit, 2])
    expect(lines[0]).toMatch(new RegExp(`^done +${first}.* +\\d+ +[\\d.]+ s +[\\d,]+ d`))
    expect(lines[1]).toMatch(new RegExp(`^fresh(?:\\.yaml)? +${second}`))
  }
  const missing = await spillway(['status', done, 'nowhere.yaml', '--json'], folder, env)
  expect(missing.code).toBe(2)
  expect(missing.stdout).toContain('"file":"nowhere.yaml","error":"The pipeline file does not exist')
})
