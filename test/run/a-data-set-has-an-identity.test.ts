import { cp, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readHeader } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { newWorkspace, type PipelineParts } from '../support/workspace.ts'
import { exportHere } from '../warehouse/in-process.ts'

const parts = (until: string, load: PipelineParts['load'] = {}): PipelineParts => ({
  extract: { domains: ['scatterholt.com'], windows: { from: '2024-01-01', until, every: 'month' } },
  load,
})

async function idIn(output: string): Promise<string> {
  const { data_set_id } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  expect((await readHeader(storeAt(output)))?.data_set_id).toBe(data_set_id)
  return data_set_id
}

it('it is created with the data set, and stays the same in later runs, redone partitions, moves and copies', async () => {
  const here = await newWorkspace(parts('2024-03-01'))
  await exportHere(here)
  const id = await idIn(here.output)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  await here.write(parts('2024-05-01'))
  await exportHere(here)
  // Which rewrites the checkpoint.
  await exportHere(here, ['domain.scatterholt.com/2024-01-01..2024-02-01'])
  expect(await idIn(here.output)).toBe(id)
  const [moved, copied] = [join(here.folder, 'moved'), join(here.folder, 'copied')]
  await rename(here.output, moved)
  await cp(moved, copied, { recursive: true })
  for (const path of ['moved', 'copied']) {
    await here.write(parts('2024-06-01', { path }))
    await exportHere(here)
  }
  expect([await idIn(moved), await idIn(copied)]).toEqual([id, id])
})
