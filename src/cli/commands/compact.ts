import { type CompactResult, compactDataSet } from '../../data-set/index.ts'
import { flag, integerValue } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { bytes, count, counted } from '../terminal/text.ts'

/** A folder with fewer small shards is not worth the reading and writing. */
const MIN_SHARDS = 4

export const compact = dataSetCommand('change', {
  flags: {
    'min-shards': integerValue('Leave folders alone that have fewer small shards', MIN_SHARDS, 2),
    'dry-run': flag('Report what would be written together, and change nothing'),
    json: flag('Print the result as JSON'),
  },
  examples: [['$0 compact pipeline.yaml --dry-run', 'What there is to write together']],
  epilogue: 'No request is sent, and no row changes. The next `load` moves none.',
  async run(args, io, dataSet) {
    const { minShards, dryRun } = args
    const result = await changing(io, (options) => compactDataSet(dataSet, minShards, { ...options, dryRun }))
    await io.stdout.result(args.json, result, [resultText(result, args.dryRun)])
  },
})

function resultText({ pipeline, folders, shards, rows, bytes: size }: CompactResult, isDry: boolean): string {
  if (shards.before === 0) return `${pipeline}: no folder has small shards to write together`
  const from = `${counted(shards.before, 'small shard')} of ${counted(folders, 'folder')}, with ${counted(rows, 'row')}`
  if (isDry || size.after === null)
    return `${pipeline}: ${from} (${bytes(size.before)}), would become ${count(shards.after)}`
  return `${pipeline}: ${from}, are ${count(shards.after)} now (${bytes(size.before)} before, ${bytes(size.after)} after)`
}
