import { type Pipeline, systemClock } from '../../core/index.ts'
import { type PruneResult, pruneDataSet } from '../../data-set/index.ts'
import { AGE_EXPECTED, pruneBefore } from '../../pipeline/index.ts'
import { flag, type Io, stringValue } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { canAsk, requireYes } from '../terminal/prompts.ts'
import { bytes, count, counted, plainLine, shownPath } from '../terminal/text.ts'

// --json prints all.
const MAX_SHOWN = 20

export const prune = dataSetCommand('change', {
  flags: {
    'older-than': stringValue(
      `Partitions whose windows ended so long ago: ${AGE_EXPECTED}; left out: load.keep`,
    ),
    'dry-run': flag('Report what would be removed, and change nothing'),
    yes: flag('Do not ask'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 prune pipeline.yaml --older-than 24mo --dry-run', 'What is older than two years'],
    ['$0 prune pipeline.yaml --yes', 'From cron, by the load.keep of the file'],
  ],
  epilogue: 'No run requests pruned partitions again, except with `run --redo`.',
  async run(args, io, dataSet) {
    const { pipeline } = dataSet
    const before = pruneBefore(pipeline, args.olderThan, systemClock.now())
    const work = (dryRun: boolean) =>
      changing(io, (options) => pruneDataSet(dataSet, before, { ...options, dryRun }))
    if (!args.dryRun && !args.yes) await askToPrune(pipeline, await work(true), io)
    const result = await work(args.dryRun)
    await io.stdout.result(args.json, { ...result, dry_run: args.dryRun }, [resultText(result, args.dryRun)])
  },
})

async function askToPrune(pipeline: Pipeline, result: PruneResult, { screen, cwd }: Io): Promise<void> {
  if (canAsk(screen)) {
    if (result.partitions === 0) return
    screen.write(`${resultText(result, true)}\n`)
  }
  await requireYes(screen, {
    what: 'prune removes data',
    cost: cost(result),
    where: shownPath(pipeline.load.path, cwd),
    question: 'Remove them for good?',
    next: 'Run `prune` again any time.',
  })
}

function resultText(result: PruneResult, isDry: boolean): string {
  const { pipeline, kept, removed } = result
  const lines = [`${pipeline}: ${isDry ? cost(result) : outcome(result)}`]
  for (const { partition, rows, quarantined } of removed.slice(0, MAX_SHOWN))
    lines.push(`  ${plainLine(partition)}  ${counted(rows, 'row')}${refusedText(quarantined)}`)
  if (removed.length > MAX_SHOWN)
    lines.push(`  … and ${count(removed.length - MAX_SHOWN)} more; --json lists all`)
  if (kept.length === 0) return lines.join('\n')
  lines.push(`${counted(kept.length, 'partition')} of that age ${kept.length === 1 ? 'stays' : 'stay'}:`)
  for (const each of kept.slice(0, MAX_SHOWN))
    lines.push(`  ${plainLine(each.partition)}  ${reasonText(each)}`)
  if (kept.length > MAX_SHOWN) lines.push(`  … and ${count(kept.length - MAX_SHOWN)} more; --json lists all`)
  if (kept.some(({ reason }) => reason === 'shared'))
    lines.push(
      'Partitions in one shard are removed together; with window in load.partition_by each window has its own shards.',
    )
  return lines.join('\n')
}

function cost(result: PruneResult): string {
  if (result.partitions === 0) return `No partition that ended before ${result.before} is there to go.`
  return `${amount(result)} ended before ${result.before} and would go.`
}

function outcome(result: PruneResult): string {
  if (result.partitions === 0) return `no partition that ended before ${result.before} was there to go`
  return `pruned ${amount(result)}; they ended before ${result.before}`
}

function amount({ partitions, shards, rows, bytes: size, quarantined }: PruneResult): string {
  return `${counted(partitions, 'partition')}: ${counted(shards, 'shard')} with ${counted(rows, 'row')} (${bytes(size)})${refusedText(quarantined)}`
}

function refusedText(quarantined: number): string {
  return quarantined === 0 ? '' : `, ${counted(quarantined, 'quarantined item')}`
}

function reasonText({ reason, with: other }: PruneResult['kept'][number]): string {
  switch (reason) {
    case 'unfinished':
      return 'is not exported to its end; run the pipeline first'
    case 'shared':
      return `lies in one shard with ${plainLine(other ?? '')}, which stays`
  }
}
