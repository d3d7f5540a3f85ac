import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { DataSet, syncStatements } from '../../src/data-set/index.ts'
import type { DialectName } from '../../src/warehouse/index.ts'
import { readCsv, readParquet } from '../support/read-shards.ts'
import { monthsUntil, newWorkspace, type PipelineParts, SMALL, type Workspace } from '../support/workspace.ts'
import { exportHere, pipelineIn } from './in-process.ts'

/** Folders by query, so that each run adds a shard to each of two. */
const parts = (until: string, load: PipelineParts['load']): PipelineParts => ({
  extract: { domains: SMALL.domains, windows: monthsUntil(until), include: ['auth_domains'] },
  load: { partition_by: ['query'], ...load },
})

/** The changes that a data set undergoes, each by its name, in an order in which each changes rows or shards. */
export type Change = { readonly name: string; readonly happen: () => Promise<void> }

export async function changingDataSet(
  load: PipelineParts['load'] = {},
): Promise<{ readonly here: Workspace; readonly changes: readonly Change[] }> {
  const here = await newWorkspace(parts('2024-02-01', load))
  const until = async (end: string): Promise<void> => {
    await here.write(parts(end, load))
    await exportHere(here)
  }
  const cli = async (...words: string[]): Promise<void> => {
    const { code, stderr } = await here.cli(...words)
    expect(code, stderr).toBe(0)
  }
  const changes: Change[] = [
    { name: 'a run', happen: () => until('2024-02-01') },
    { name: 'new windows', happen: () => until('2024-03-01') },
    {
      name: 'more of them, then compact',
      async happen() {
        await until('2024-05-01')
        await cli('compact', 'pipeline.yaml', '--min-shards', '2')
      },
    },
    { name: 'redo', happen: () => exportHere(here, [`domain.${SMALL.domains![0]}/2024-02-01*`]) },
    {
      name: 'forget',
      async happen() {
        const rows = load.format === 'csv' ? await readCsv(here.output) : await readParquet(here.output)
        const names = rows.map(({ identity_name }) => String(identity_name))
        const person = names.find((name) => /^[\x21-\x7e]+@[a-z.]+$/.test(name))!
        await writeFile(join(here.folder, 'people.txt'), `${person}\n`)
        await cli('forget', 'pipeline.yaml', '--yes', '--identities', 'people.txt')
      },
    },
    {
      name: 'prune',
      async happen() {
        const days = Math.floor((Date.now() - Date.parse('2024-03-01')) / 86_400_000)
        await cli('prune', 'pipeline.yaml', '--yes', '--older-than', `${days}d`)
      },
    },
  ]
  return { here, changes }
}

/** The statements of the script that brings a table of DuckDB or ClickHouse in line with a data set. */
export async function syncOf(here: Workspace, dialect: DialectName): Promise<readonly string[]> {
  const text = await syncStatements(await DataSet.of(await pipelineIn(here)), dialect)
  return text.split(/;\n+/).filter((statement) => statement.trim() !== '')
}

export async function columnsIn(here: Workspace): Promise<readonly string[]> {
  return (await here.manifest()).columns.map(({ name }) => name)
}
