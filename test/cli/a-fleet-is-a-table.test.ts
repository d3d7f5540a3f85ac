import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { threeMonths, trial } from './trial.ts'

/** Twenty files; some of their pipelines are not as they should be. */
async function fleet() {
  const here = await trial()
  const names = Array.from({ length: 19 }, (_, i) => `org${String(i).padStart(2, '0')}`)
  const unlike: Readonly<Record<string, Parameters<typeof threeMonths>[0]>> = {
    org03: { service: { token_env: 'OTHER' } },
    org04: { extract: { page_size: 2, max_requests: 1 } },
    org05: { extract: { windows: { from: '2024-01-01', until: 'now', every: 'year' } } },
  }
  for (const name of names)
    await here.write(threeMonths({ name, ...unlike[name], load: { path: name } }), `${name}.yaml`)
  const ran = names.slice(0, 10).map((name) => `${name}.yaml`)
  await exits(3, here.with({ OTHER: 'not-the-token' }).cli('run', ...ran))
  rmSync(join(here.folder, 'org07', (await shardPaths(join(here.folder, 'org07')))[0]!))
  return { here, files: [...names.map((name) => `${name}.yaml`), 'nowhere.yaml'] }
}

it('status of twenty files is a line for each, with what is wrong; of one file it is all', async () => {
  const { here, files } = await fleet()
  const { stderr, stdout } = await exits(2, here.start('status', ...files).result)
  expect(stderr).toContain('The pipeline file does not exist (nowhere.yaml)')
  const [titles, ...lines] = stdout.trimEnd().split('\n')
  expect(titles).toMatch(/^pipeline +verdict +rows +covers until +waiting +last run +remarks$/)
  expect(lines.map((line) => line.split(' ')[0])).toEqual(
    files.map((file) => (file === 'nowhere.yaml' ? file : file.slice(0, -5))),
  )
  const unlike = new Map(lines.map((line) => [line.split(' ')[0], line]))
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d UTC`
  for (const [name, expected] of [
    ['org03', `STOPPED +${time} +The service responded with 401: .*…`],
    ['org04', `STOPPED +2 +${time} +The budget of 1 request is used up; 3 of 3 partitions left .*…`],
    ['org05', `complete +40 +20\\d\\d-01-01 +1 +${time}`],
    ['org07', `DAMAGED +10 +2024-04-01 +${time} +A shard is missing \\(.*\\.parquet\\)`],
    ['nowhere.yaml', 'ERROR +The pipeline file does not exist'],
  ] as const) {
    expect(unlike.get(name)).toMatch(new RegExp(`^${name} +${expected}$`))
    unlike.delete(name)
  }
  for (const [name = '', line] of unlike) {
    const expected =
      name < 'org10' ? `complete +10 +2024-04-01 +${time}` : 'INCOMPLETE +nothing is exported yet'
    expect(line).toMatch(new RegExp(`^org\\d\\d +${expected}$`))
  }

  const json = await exits(2, here.cli('status', ...files, '--json'))
  expect(json.stdout.match(/^\{"pipeline":/gm)).toHaveLength(20)
  const alone = await exits(0, here.cli('status', 'org03.yaml'))
  expect(alone.stdout).toMatch(/^org03: STOPPED(?:.*\n)+query +partitions/)
})

it('beside a verdict stand what is overdue, and where file and data set differ', async () => {
  const here = await trial()
  await exits(0, here.call('run'))
  await here.write(threeMonths({ transform: { secret: 'drop' } }), 'other.yaml')
  writeFileSync(join(here.output, '_report.html'), '')
  const { stdout, stderr } = await exits(0, here.cli('status', 'pipeline.yaml', 'other.yaml'))
  expect(stdout).toMatch(/^trial +complete .* the summary page is not that of the data set as it is now/m)
  expect(stdout).toMatch(/^trial +complete .* the file and the data set differ: transform\.secret/m)
  expect(stderr).toBe('')
})
